//! An HTTP/2 server, with prior knowledge or over TLS, that does what its script says, frame by
//! frame where it matters.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use h2::Reason;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::log::{Connection, Log, Received};
use super::script::{Answer, Body, End, Script, Turn, acts_are_a_script};
use super::socket::{Socket, Tap};
use super::tls;

/// What an HTTP/2 server does with one stream.
#[derive(Clone, Debug)]
pub enum Act {
    /// Reads the request and answers.
    Respond(Answer),
    /// Resets the stream as soon as its head came.
    ResetUnread(Reason),
    /// Reads the request whole, then resets the stream.
    Reset(Reason),
    /// Reads the request whole, sends this GOAWAY, and goes on with the act.
    GoAway(Last, Reason, Box<Act>),
    /// As [`Act::GoAway`], before anything of the request's body is read.
    GoAwayUnread(Last, Reason, Box<Act>),
    /// Reads the request whole and ends the connection: closed, reset or held in silence.
    End(End),
    /// Reads the request whole and says nothing on this stream; others go on.
    Silence,
    /// Reads the request whole and then neither reads nor writes: pings stay unanswered.
    Freeze,
    /// Reads the request whole and writes these bytes between two frames.
    Raw(Bytes),
    /// Reads the request whole and lets it choose.
    Ask(Chooser),
}

/// The last stream that a GOAWAY covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// The one before this: this one was not processed.
    Below,
    /// This one: it may be processed.
    This,
    /// All there could be, as a server sends it that wants no more streams and ends those it has.
    Max,
}

/// Chooses an act by the request.
#[derive(Clone)]
pub struct Chooser(pub Arc<dyn Fn(&Received) -> Act + Send + Sync>);

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chooser")
    }
}

impl Last {
    fn id(self, stream: u32) -> u32 {
        match self {
            Last::Below => stream.saturating_sub(2),
            Last::This => stream,
            Last::Max => (1 << 31) - 1,
        }
    }
}

impl Act {
    /// 200 and this body.
    pub fn ok(body: impl Into<Bytes>) -> Act {
        Answer::new(200).body(body).into()
    }

    /// This status and a short body.
    pub fn status(status: u16) -> Act {
        Answer::new(status).body("refused").into()
    }

    /// Reads the request and lets it choose.
    pub fn ask(choose: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Act {
        Act::Ask(Chooser(Arc::new(choose)))
    }
}

impl From<Answer> for Act {
    fn from(answer: Answer) -> Act {
        Act::Respond(answer)
    }
}

acts_are_a_script!(Act);

/// The server. It goes when this is dropped, with all its connections. It derefs to its [`Log`],
/// whose `begun` counts streams.
pub struct H2 {
    pub addr: SocketAddr,
    pub script: Script<Act>,
    scheme: &'static str,
    log: Log,
    accepting: JoinHandle<()>,
}

impl H2 {
    /// A server for clients with prior knowledge.
    pub async fn start(script: impl Into<Script<Act>>) -> H2 {
        H2::on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            None,
            script,
        )
    }

    /// A server over TLS; the acceptor should offer `h2`.
    pub async fn start_tls(tls: TlsAcceptor, script: impl Into<Script<Act>>) -> H2 {
        H2::on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            Some(tls),
            script,
        )
    }

    /// A server on a listener of the test's own.
    pub fn on(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        script: impl Into<Script<Act>>,
    ) -> H2 {
        let (addr, log, script) = (
            listener.local_addr().unwrap(),
            Log::default(),
            script.into(),
        );
        let scheme = if tls.is_some() { "https" } else { "http" };
        let accepting = tokio::spawn(accept(listener, tls, script.clone(), log.clone()));
        H2 {
            addr,
            script,
            scheme,
            log,
            accepting,
        }
    }

    /// The URL of a path, by address.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.addr)
    }
}

impl Deref for H2 {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl Drop for H2 {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, script: Script<Act>, log: Log) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        let _ = socket.set_nodelay(true);
        let (tls, script, log, guard) = (tls.clone(), script.clone(), log.clone(), log.accepted());
        connections.spawn(async move {
            match tls {
                None => serve(socket, script, log, guard).await,
                Some(tls) => {
                    if let Ok(socket) = tls::accept(&tls, socket).await {
                        serve(socket, script, log, guard).await;
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve<S: Socket + 'static>(socket: S, script: Script<Act>, log: Log, guard: Connection) {
    let tap = Tap::new(socket);
    let Ok(mut connection) = h2::server::Builder::new()
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 24)
        .handshake::<_, Bytes>(tap.clone())
        .await
    else {
        return;
    };
    let mut streams = JoinSet::new();
    for request in 0.. {
        let accepted = tokio::select! {
            biased;
            () = tap.ended() => break,
            accepted = connection.accept() => accepted,
        };
        let Some(Ok((head, respond))) = accepted else {
            break;
        };
        log.note_begun();
        let act = script.next(Turn {
            connection: guard.number,
            request,
        });
        let (tap, log, number) = (tap.clone(), log.clone(), guard.number);
        streams.spawn(async move {
            let _ = play(act, head, respond, &tap, &log, number).await;
        });
        while streams.try_join_next().is_some() {}
    }
    tap.finish().await;
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn play<S: Socket>(
    mut act: Act,
    head: Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    tap: &Tap<S>,
    log: &Log,
    connection: usize,
) -> Result<(), Failure> {
    match act {
        Act::ResetUnread(reason) => {
            respond.send_reset(reason);
            return Ok(());
        }
        Act::GoAwayUnread(last, reason, then) => {
            go_away(tap, last.id(respond.stream_id().into()), reason).await?;
            act = *then;
        }
        _ => {}
    }
    let request = whole(head, log, connection).await?;
    loop {
        act = match act {
            Act::Ask(chooser) => chooser.0(&request),
            Act::GoAway(last, reason, then) | Act::GoAwayUnread(last, reason, then) => {
                go_away(tap, last.id(respond.stream_id().into()), reason).await?;
                *then
            }
            Act::Respond(answer) => return self::answer(respond, &answer, tap).await,
            Act::Reset(reason) | Act::ResetUnread(reason) => {
                respond.send_reset(reason);
                return Ok(());
            }
            Act::End(End::Stall | End::Keep) | Act::Silence => {
                std::future::pending::<()>().await;
                return Ok(());
            }
            Act::End(end) => {
                tap.end(end);
                return Ok(());
            }
            Act::Freeze => {
                tap.freeze();
                return Ok(());
            }
            Act::Raw(bytes) => {
                tap.write(&bytes).await?;
                std::future::pending::<()>().await;
                return Ok(());
            }
        }
    }
}

async fn whole(
    head: Request<h2::RecvStream>,
    log: &Log,
    connection: usize,
) -> Result<Received, Failure> {
    let (parts, mut stream) = head.into_parts();
    let mut body = BytesMut::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len())?;
    }
    stream.trailers().await?;
    let path = parts
        .uri
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let request = Received {
        connection,
        method: parts.method,
        path,
        headers: parts.headers,
        body: body.freeze(),
    };
    log.note(request.clone());
    Ok(request)
}

async fn answer<S: Socket>(
    mut respond: SendResponse<Bytes>,
    answer: &Answer,
    tap: &Tap<S>,
) -> Result<(), Failure> {
    if !answer.after.is_zero() {
        tokio::time::sleep(answer.after).await;
    }
    let mut head = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        head = head.header(name, value);
    }
    match &answer.body {
        Body::Whole(body) | Body::Later(_, body) => {
            head = head.header("content-length", body.len());
        }
        Body::Short(length, _) | Body::Long(length) => {
            head = head.header("content-length", *length);
        }
        _ => {}
    }
    let mut stream = respond.send_response(head.body(())?, false)?;
    match &answer.body {
        Body::Whole(body) | Body::UntilClose(body) => stream.send_data(body.clone(), true)?,
        Body::Later(wait, body) => {
            tokio::time::sleep(*wait).await;
            stream.send_data(body.clone(), true)?;
        }
        Body::Chunked(pieces, trailers) => {
            for piece in pieces {
                stream.send_data(piece.clone(), false)?;
            }
            let mut map = HeaderMap::new();
            for (name, value) in trailers {
                map.append(name.parse::<HeaderName>()?, value.parse::<HeaderValue>()?);
            }
            stream.send_trailers(map)?;
        }
        Body::Slow(pieces, pause) => {
            for piece in pieces {
                tokio::time::sleep(*pause).await;
                stream.send_data(piece.clone(), false)?;
            }
            stream.send_data(Bytes::new(), true)?;
        }
        Body::Long(length) => {
            let mut left = *length;
            while left > 0 {
                stream.reserve_capacity(16 * 1024);
                let capacity = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
                let Some(capacity) = capacity.transpose()? else {
                    return Ok(());
                };
                let piece = left.min(capacity as u64);
                left -= piece;
                stream.send_data(vec![b'x'; piece as usize].into(), left == 0)?;
            }
        }
        Body::Endless => loop {
            stream.reserve_capacity(16 * 1024);
            match std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(capacity) => stream.send_data(vec![b'x'; capacity?].into(), false)?,
                None => return Ok(()),
            }
        },
        Body::Short(_, body) => {
            stream.send_data(body.clone(), false)?;
            broken(&mut stream, answer.end, tap).await;
        }
        Body::ShortChunks(pieces) => {
            for piece in pieces {
                stream.send_data(piece.clone(), false)?;
            }
            broken(&mut stream, answer.end, tap).await;
        }
        Body::BadChunk => stream.send_reset(Reason::PROTOCOL_ERROR),
    }
    Ok(())
}

/// h2 itself sends only its own idea of the last stream.
async fn go_away<S: Socket>(tap: &Tap<S>, last: u32, reason: Reason) -> std::io::Result<()> {
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last.to_be_bytes());
    frame.extend_from_slice(&u32::from(reason).to_be_bytes());
    tap.write(&frame).await
}

/// Breaks a body off: [`End::Keep`] resets the stream, the others end the connection.
async fn broken<S: Socket>(stream: &mut h2::SendStream<Bytes>, end: End, tap: &Tap<S>) {
    // A reset overtakes the data that is still in the queue.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    match end {
        End::Keep => stream.send_reset(Reason::INTERNAL_ERROR),
        End::Stall => std::future::pending().await,
        end => tap.end(end),
    }
}
