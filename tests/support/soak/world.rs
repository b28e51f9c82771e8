//! The servers, and the ways to them: names, ports where something waits, a proxy.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::fault::{End, Fault, Handshake, Hop, Proxy};
use super::ledger::{Connection, HOP, Ledger, ORIGIN};
use super::plan::{Plan, Road};
use super::{h1, h2};
use crate::support::hang::Hang;
use crate::support::refused::Refused;
use crate::support::tls::{self, Cert, Tls};

/// No server waits longer than this for a client to go.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where servers listen. All go when this is dropped, with their connections.
pub struct World {
    pub doors: Doors,
    pub proxy: SocketAddr,
    serving: JoinSet<()>,
    _refused: Refused,
    _hang: Hang,
}

/// Whatever can be connected to.
#[derive(Clone, Copy)]
pub struct Doors {
    http1: SocketAddr,
    http2: SocketAddr,
    tls1: SocketAddr,
    tls2: SocketAddr,
    stranger: SocketAddr,
    closes: SocketAddr,
    resets: SocketAddr,
    /// Read something first, so that a handshake is under way.
    closes_late: SocketAddr,
    resets_late: SocketAddr,
    garbage: SocketAddr,
    refuses: SocketAddr,
    hangs: SocketAddr,
}

impl World {
    pub async fn start(ledger: &Arc<Ledger>) -> World {
        let (refused, hang) = (Refused::new(), Hang::start().await);
        let mut serving = JoinSet::new();
        let mut on = async |serve: Serve| listen(&mut serving, ledger, serve).await;
        let acceptor = |tls: Tls| Some(tls.acceptor());
        let doors = Doors {
            http1: on(Serve::Http1(None)).await,
            http2: on(Serve::Http2(None)).await,
            tls1: on(Serve::Http1(acceptor(Tls::new(Cert::Good)))).await,
            tls2: on(Serve::Http2(acceptor(Tls::new(Cert::Good).alpn("h2")))).await,
            stranger: on(Serve::Http1(acceptor(Tls::new(Cert::Untrusted)))).await,
            closes: on(Serve::Nothing(false, End::Close)).await,
            resets: on(Serve::Nothing(false, End::Reset)).await,
            closes_late: on(Serve::Nothing(true, End::Close)).await,
            resets_late: on(Serve::Nothing(true, End::Reset)).await,
            garbage: on(Serve::Garbage).await,
            refuses: refused.addr,
            hangs: hang.addr,
        };
        let proxy = on(Serve::Proxy(Box::new(doors))).await;
        World {
            doors,
            proxy,
            serving,
            _refused: refused,
            _hang: hang,
        }
    }

    /// Ends every server and connection.
    pub async fn end(mut self) {
        self.serving.shutdown().await;
    }
}

/// What stands behind a door.
#[derive(Clone)]
enum Serve {
    Http1(Option<TlsAcceptor>),
    Http2(Option<TlsAcceptor>),
    /// Ends, after it read something or at once.
    Nothing(bool, End),
    Garbage,
    Proxy(Box<Doors>),
}

async fn listen(serving: &mut JoinSet<()>, ledger: &Arc<Ledger>, serve: Serve) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let ledger = Arc::clone(ledger);
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let Ok((socket, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let _ = socket.set_nodelay(true);
            connections.spawn(one(serve.clone(), socket, ledger.accepted()));
            while connections.try_join_next().is_some() {}
        }
    });
    addr
}

/// One connection. That it ends in an error is what this is for.
async fn one(serve: Serve, mut socket: TcpStream, connection: Connection) {
    let _ = match serve {
        Serve::Http1(None) => h1::serve(socket, connection).await,
        Serve::Http1(Some(tls)) => match tls::accept(&tls, socket).await {
            Ok(socket) => h1::serve(socket, connection).await,
            Err(error) => Err(error),
        },
        Serve::Http2(None) => h2::serve(socket, connection).await,
        Serve::Http2(Some(tls)) => match tls::accept(&tls, socket).await {
            Ok(socket) => h2::serve(socket, connection).await,
            Err(error) => Err(error),
        },
        Serve::Nothing(read, end) => {
            if read {
                let _ = socket.read(&mut [0; 4096]).await;
            }
            finish(socket, end)
        }
        Serve::Garbage => {
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(b"HTTP/1.1 400 What\r\n\r\n").await;
            gone(&mut socket).await
        }
        Serve::Proxy(doors) => proxy(socket, connection, *doors).await,
    };
}

/// Ends a connection as told.
pub fn finish(socket: TcpStream, end: End) -> io::Result<()> {
    if end == End::Reset {
        socket.set_zero_linger()?;
    }
    Ok(())
}

/// Waits until the client has gone.
pub async fn gone<R: AsyncReadExt + Unpin>(socket: &mut R) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let reading = async {
        while socket.read(&mut buffer).await? > 0 {}
        Ok(())
    };
    // An error of the reading means that the client has gone too.
    timeout(PATIENCE, reading).await.unwrap_or(Ok(()))
}

/// Opens a tunnel, if the plan has it so.
async fn proxy(mut client: TcpStream, connection: Connection, doors: Doors) -> io::Result<()> {
    let mut head = BytesMut::new();
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let ledger = &connection.ledger;
    let target = head.split(' ').nth(1).and_then(|to| to.split(':').next());
    let plan = target.and_then(|name| plan_of(ledger, name));
    let Some((plan, false)) = plan else {
        ledger.note_odd(format!("the proxy was asked for {target:?}"));
        return Ok(());
    };
    let status = match ledger.current(plan.id) {
        Some(Fault::Proxy(Proxy::Refuses(status))) => *status,
        Some(Fault::Proxy(Proxy::Ends(end))) => return finish(client, *end),
        Some(Fault::Proxy(Proxy::Silent)) => return gone(&mut client).await,
        Some(Fault::Refused) => 502,
        fault => {
            let Some(door) = doors.of(plan, fault) else {
                return Ok(());
            };
            let mut server = TcpStream::connect(door).await?;
            server.set_nodelay(true)?;
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            return copy_bidirectional(&mut client, &mut server).await.map(drop);
        }
    };
    let answer = format!("HTTP/1.1 {status} Refused\r\ncontent-length: 0\r\n\r\n");
    client.write_all(answer.as_bytes()).await?;
    gone(&mut client).await
}

impl Doors {
    /// Where an attempt of this plan comes out that meets this fault; `None` is nowhere.
    fn of(&self, plan: &Plan, fault: Option<&Fault>) -> Option<SocketAddr> {
        Some(match fault {
            Some(Fault::NoName) => return None,
            Some(Fault::Refused) => self.refuses,
            Some(Fault::Hang) => self.hangs,
            Some(Fault::Dropped(End::Close)) => self.closes,
            Some(Fault::Dropped(End::Reset)) => self.resets,
            Some(Fault::Handshake(Handshake::Ends(End::Close))) => self.closes_late,
            Some(Fault::Handshake(Handshake::Ends(End::Reset))) => self.resets_late,
            Some(Fault::Handshake(Handshake::Garbage)) => self.garbage,
            Some(Fault::Handshake(Handshake::Stranger)) => self.stranger,
            _ => match (plan.road.is_tls(), plan.road.is_http2()) {
                (false, false) => self.http1,
                (false, true) => self.http2,
                (true, false) => self.tls1,
                (true, true) => self.tls2,
            },
        })
    }

    /// Where a redirect of this plan comes out.
    fn hop_of(&self, plan: &Plan, hop: Hop) -> Option<SocketAddr> {
        match hop {
            Hop::NoName => None,
            Hop::Refused => Some(self.refuses),
            // The client that speaks HTTP/2 without being asked knows nothing else.
            Hop::Works | Hop::Cut if plan.road.is_http2() && !plan.road.is_tls() => {
                Some(self.http2)
            }
            Hop::Works | Hop::Cut => Some(self.http1),
        }
    }
}

/// The URL that a send asks for.
pub fn url(plan: &Plan) -> String {
    let scheme = if plan.road.is_tls() { "https" } else { "http" };
    match plan.road {
        Road::Shared1 => format!("http://shared.servers.test{ORIGIN}"),
        Road::Stale1 => format!("http://stale.servers.test{ORIGIN}"),
        Road::Shared2 => format!("http://shared2.servers.test{ORIGIN}"),
        _ => format!("{scheme}://s{}.servers.test{ORIGIN}", plan.id),
    }
}

/// Where a send is redirected to.
pub fn hop_url(plan: &Plan) -> String {
    format!("http://h{}.servers.test{HOP}", plan.id)
}

/// The plan that a name belongs to, and whether it is that of its next hop.
fn plan_of<'a>(ledger: &'a Ledger, name: &str) -> Option<(&'a Plan, bool)> {
    let name = name.strip_suffix(".servers.test")?;
    let (kind, id) = name.split_at_checked(1)?;
    let plan = ledger.plans.get(id.parse::<usize>().ok()?)?;
    match kind {
        "s" => Some((plan, false)),
        "h" => Some((plan, true)),
        _ => None,
    }
}

/// Leads every name where the plan of the moment has it lead.
pub struct Guide {
    pub ledger: Arc<Ledger>,
    pub doors: Doors,
}

impl Guide {
    fn find(&self, name: &str) -> Option<SocketAddr> {
        match name {
            "shared.servers.test" | "stale.servers.test" => return Some(self.doors.http1),
            "shared2.servers.test" => return Some(self.doors.http2),
            _ => {}
        }
        let (plan, is_hop) = plan_of(&self.ledger, name)?;
        let fault = self.ledger.current(plan.id);
        if !is_hop {
            return self.doors.of(plan, fault);
        }
        match fault {
            Some(Fault::Redirect(_, hop)) => self.doors.hop_of(plan, *hop),
            _ => None,
        }
    }
}

impl Resolve for Guide {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.find(name.as_str());
        let resolved: Result<Addrs, Box<dyn std::error::Error + Send + Sync>> = match found {
            Some(addr) => Ok(Box::new(std::iter::once(addr))),
            None => Err(io::Error::other("no such name").into()),
        };
        Box::pin(std::future::ready(resolved))
    }
}

/// Bounds what a server does for a client that may have gone.
pub async fn at_most<F: Future>(doing: F) -> Option<F::Output> {
    timeout(PATIENCE, doing).await.ok()
}
