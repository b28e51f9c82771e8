//! An HTTP/1.1 server on raw sockets that does what its script says.

use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::str;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::log::{Connection, Log, Received};
use super::script::{Act, Answer, Body, End, Script, Turn};
use super::socket::Socket;
use super::tls;

/// The server. It goes when this is dropped, with all its connections. It derefs to its [`Log`].
pub struct H1 {
    pub addr: SocketAddr,
    pub script: Script,
    scheme: &'static str,
    log: Log,
    accepting: JoinHandle<()>,
}

impl H1 {
    /// A server on a free port.
    pub async fn start(script: impl Into<Script>) -> H1 {
        H1::on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            None,
            script,
        )
    }

    /// A server that speaks TLS.
    pub async fn start_tls(tls: TlsAcceptor, script: impl Into<Script>) -> H1 {
        H1::on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            Some(tls),
            script,
        )
    }

    /// A server on a listener of the test's own.
    pub fn on(listener: TcpListener, tls: Option<TlsAcceptor>, script: impl Into<Script>) -> H1 {
        let (addr, log, script) = (
            listener.local_addr().unwrap(),
            Log::default(),
            script.into(),
        );
        let scheme = if tls.is_some() { "https" } else { "http" };
        let accepting = tokio::spawn(accept(listener, tls, script.clone(), log.clone()));
        H1 {
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

    /// The URL of a path under a name that the client resolves.
    pub fn url_at(&self, name: &str, path: &str) -> String {
        format!("{}://{name}:{}{path}", self.scheme, self.addr.port())
    }
}

impl Deref for H1 {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl Drop for H1 {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, script: Script, log: Log) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        let _ = socket.set_nodelay(true);
        let (tls, script, log, guard) = (tls.clone(), script.clone(), log.clone(), log.accepted());
        connections.spawn(async move {
            let _ = match tls {
                None => serve(socket, script, log, guard).await,
                Some(tls) => match tls::accept(&tls, socket).await {
                    Ok(socket) => serve(socket, script, log, guard).await,
                    Err(error) => Err(error),
                },
            };
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve<S: Socket>(
    socket: S,
    script: Script,
    log: Log,
    guard: Connection,
) -> io::Result<()> {
    let mut wire = Wire {
        socket,
        buffer: BytesMut::new(),
    };
    match script.on_accept() {
        Some(Act::ResetOnAccept) => return wire.end(End::Reset).await.map(drop),
        Some(_) => return wire.end(End::Close).await.map(drop),
        None => {}
    }
    for request in 0.. {
        if wire.buffer.is_empty() && !wire.first_byte().await? {
            return wire.socket.shutdown().await;
        }
        let act = script.next(Turn {
            connection: guard.number,
            request,
        });
        if !wire.play(act, &log, guard.number).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// One connection and what was read ahead of it.
struct Wire<S> {
    socket: S,
    buffer: BytesMut,
}

struct Head {
    method: Method,
    path: String,
    headers: HeaderMap,
}

impl<S: Socket> Wire<S> {
    /// Plays one act; says whether the connection goes on.
    async fn play(&mut self, act: Act, log: &Log, connection: usize) -> io::Result<bool> {
        match act {
            Act::CloseBeforeReading | Act::CloseOnAccept => return Ok(false),
            Act::ResetOnAccept => return self.end(End::Reset).await,
            _ => {}
        }
        let head = match self.head().await {
            Ok(head) => head,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let text = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n";
                self.socket.write_all(text.as_bytes()).await?;
                return self.end(End::Close).await;
            }
            Err(error) => return Err(error),
        };
        log.note_begun();
        match act {
            Act::RespondEarly(answer) => {
                let keep = self.answer(&answer, &head.method).await?;
                if keep {
                    self.whole(head, log, connection).await?;
                }
                return Ok(keep);
            }
            Act::CutUpload(bytes, end) => {
                let mut left = bytes;
                while left > 0 {
                    left = left.saturating_sub(self.buffer.len());
                    self.buffer.clear();
                    if left > 0 {
                        self.more().await?;
                    }
                }
                return self.end(end).await;
            }
            _ => {}
        }
        let request = self.whole(head, log, connection).await?;
        let act = match act {
            Act::Ask(chooser) => chooser.0(&request),
            act => act,
        };
        match act {
            Act::Respond(answer) | Act::RespondEarly(answer) => {
                self.answer(&answer, &request.method).await
            }
            Act::ResetAfterReading => self.end(End::Reset).await,
            Act::Silence => self.end(End::Stall).await,
            Act::Raw(bytes, end) => {
                self.socket.write_all(&bytes).await?;
                self.socket.flush().await?;
                self.end(end).await
            }
            Act::Flood(first, again) => {
                self.socket.write_all(&first).await?;
                loop {
                    self.socket.write_all(&again).await?;
                    self.socket.flush().await?;
                }
            }
            _ => self.end(End::Close).await,
        }
    }

    async fn end(&mut self, end: End) -> io::Result<bool> {
        match end {
            End::Keep => return Ok(true),
            End::Close => self.socket.shutdown().await?,
            End::Reset => self.socket.tcp().set_zero_linger()?,
            End::Stall => while self.socket.read_buf(&mut self.buffer).await? > 0 {},
        }
        Ok(false)
    }

    async fn answer(&mut self, answer: &Answer, method: &Method) -> io::Result<bool> {
        if !answer.after.is_zero() {
            tokio::time::sleep(answer.after).await;
        }
        let bare = *method == Method::HEAD || matches!(answer.status, 100..=199 | 204 | 304);
        let mut text = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
        for (name, value) in &answer.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let length = match &answer.body {
            _ if matches!(answer.status, 100..=199 | 204) => None,
            Body::Whole(body) | Body::Later(_, body) => Some(body.len() as u64),
            Body::Short(length, _) | Body::Long(length) => Some(*length),
            Body::UntilClose(_) => None,
            _ => {
                text += "transfer-encoding: chunked\r\n";
                None
            }
        };
        if let Some(length) = length {
            text += &format!("content-length: {length}\r\n");
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        if bare {
            self.write(&bytes).await?;
            return self.end(answer.end).await;
        }
        let broken = if answer.end == End::Keep {
            End::Close
        } else {
            answer.end
        };
        match &answer.body {
            Body::Whole(body) => {
                bytes.extend_from_slice(body);
                self.write(&bytes).await?;
            }
            Body::Later(wait, body) => {
                self.write(&bytes).await?;
                tokio::time::sleep(*wait).await;
                self.write(body).await?;
            }
            Body::Chunked(chunks, trailers) => {
                for piece in chunks {
                    bytes.extend_from_slice(&chunk(piece));
                }
                bytes.extend_from_slice(b"0\r\n");
                for (name, value) in trailers {
                    bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
                }
                bytes.extend_from_slice(b"\r\n");
                self.write(&bytes).await?;
            }
            Body::Slow(chunks, pause) => {
                self.write(&bytes).await?;
                for piece in chunks {
                    tokio::time::sleep(*pause).await;
                    self.write(&chunk(piece)).await?;
                }
                self.write(b"0\r\n\r\n").await?;
            }
            Body::UntilClose(body) => {
                bytes.extend_from_slice(body);
                self.write(&bytes).await?;
                return self.end(broken).await;
            }
            Body::Short(_, body) => {
                bytes.extend_from_slice(body);
                self.write(&bytes).await?;
                return self.end(broken).await;
            }
            Body::ShortChunks(chunks) => {
                for piece in chunks {
                    bytes.extend_from_slice(&chunk(piece));
                }
                self.write(&bytes).await?;
                return self.end(broken).await;
            }
            Body::BadChunk => {
                bytes.extend_from_slice(b"zz\r\nwhat\r\n");
                self.write(&bytes).await?;
                return self.end(broken).await;
            }
            Body::Long(length) => {
                self.write(&bytes).await?;
                let (piece, mut left) = ([b'x'; 16 * 1024], *length);
                while left > 0 {
                    let next = left.min(piece.len() as u64);
                    self.write(&piece[..next as usize]).await?;
                    left -= next;
                }
            }
            Body::Endless => {
                self.write(&bytes).await?;
                let piece = chunk(&[b'x'; 16 * 1024]);
                loop {
                    self.write(&piece).await?;
                }
            }
        }
        self.end(answer.end).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await?;
        self.socket.flush().await
    }

    /// Waits for a byte and leaves the rest of them in the kernel; false at the end.
    async fn first_byte(&mut self) -> io::Result<bool> {
        let mut byte = [0];
        let read = self.socket.read(&mut byte).await?;
        self.buffer.extend_from_slice(&byte[..read]);
        Ok(read > 0)
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.socket.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn head(&mut self) -> io::Result<Head> {
        let end = loop {
            match self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                Some(end) => break end,
                None if !self.buffer[0].is_ascii_uppercase() => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                None => self.more().await?,
            }
        };
        let head = self.buffer.split_to(end + 4);
        parse(&head).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads the body and notes the request.
    async fn whole(&mut self, head: Head, log: &Log, connection: usize) -> io::Result<Received> {
        let body = if head.headers.contains_key("transfer-encoding") {
            let mut body = BytesMut::new();
            loop {
                let size = self.line().await?;
                let size = str::from_utf8(&size).ok().and_then(|size| {
                    usize::from_str_radix(size.split(';').next().unwrap_or("").trim(), 16).ok()
                });
                match size.ok_or(io::ErrorKind::InvalidData)? {
                    0 => break,
                    size => body.extend_from_slice(&self.take(size).await?),
                }
                self.line().await?;
            }
            while !self.line().await?.is_empty() {}
            body.freeze()
        } else {
            let length = head.headers.get("content-length");
            let length = length.map(|length| length.to_str().unwrap().parse().unwrap());
            self.take(length.unwrap_or(0)).await?
        };
        let Head {
            method,
            path,
            headers,
        } = head;
        let request = Received {
            connection,
            method,
            path,
            headers,
            body,
        };
        log.note(request.clone());
        Ok(request)
    }

    async fn line(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line = self.buffer.split_to(end).freeze();
                self.buffer.advance(2);
                return Ok(line);
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Bytes> {
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }
}

fn parse(head: &[u8]) -> Option<Head> {
    let text = str::from_utf8(head).ok()?;
    let mut lines = text.trim_end().split("\r\n");
    let mut start = lines.next()?.split(' ');
    let method = start.next()?.parse().ok()?;
    let path = start.next()?.to_owned();
    start
        .next()
        .filter(|version| version.starts_with("HTTP/1."))?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        headers.append(
            name.parse::<HeaderName>().ok()?,
            value.trim().parse::<HeaderValue>().ok()?,
        );
    }
    Some(Head {
        method,
        path,
        headers,
    })
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
