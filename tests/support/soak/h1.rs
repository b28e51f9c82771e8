//! A server of HTTP/1.1 that does to each request what its plan says.

use std::io;
use std::str;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fault::{End, Fault, Hop, Refusal};
use super::ledger::{ATTEMPT, Connection, HOP, SEND, Seen};
use super::plan::{Framing, Road};
use super::world::{gone, hop_url};
use crate::support::socket::Socket;

pub async fn serve<S: Socket>(socket: S, connection: Connection) -> io::Result<()> {
    let mut wire = Wire {
        socket,
        buffer: BytesMut::new(),
    };
    while let Some(head) = wire.head().await? {
        let ledger = &connection.ledger;
        let seen = ledger.saw(&head.method, &head.path, &head.headers, connection.number);
        let Some(seen) = seen else {
            return Ok(());
        };
        let kept = if head.path == HOP {
            wire.hop(&head, &seen).await?
        } else {
            wire.play(&head, &seen).await?
        };
        if !kept {
            return Ok(());
        }
        if seen.plan().road == Road::Stale1 && seen.plan().answer.parting {
            // By now the client may be sending the next request on it, or not yet.
            let moment = Duration::from_micros(seen.plan().answer.body.length as u64);
            tokio::time::sleep(moment).await;
            return Ok(());
        }
    }
    Ok(())
}

struct Head {
    method: Method,
    path: String,
    headers: HeaderMap,
}

/// One connection and what was read ahead of it.
struct Wire<S> {
    socket: S,
    buffer: BytesMut,
}

impl<S: Socket> Wire<S> {
    /// Does what the plan says; true where the connection goes on.
    async fn play(&mut self, head: &Head, seen: &Seen) -> io::Result<bool> {
        let plan = seen.plan();
        match seen.fault() {
            Some(Fault::Unread(end)) => return self.end(end),
            Some(Fault::HalfRead(end)) => {
                self.read(head, plan.content.bytes.length / 2).await?;
                return self.end(end);
            }
            Some(Fault::Early) => {
                self.write(&empty(seen, 503, &[], false)).await?;
                self.socket.shutdown().await?;
                return Ok(false);
            }
            Some(Fault::EarlyBusy) => {
                let keep = plan.keeps_connection(seen.attempt);
                self.write(&empty(seen, 429, &[], keep)).await?;
                let body = self.read(head, usize::MAX).await?;
                seen.whole(&body);
                return Ok(keep);
            }
            _ => {}
        }
        let body = self.read(head, usize::MAX).await?;
        seen.whole(&body);
        match seen.fault() {
            Some(Fault::Lost(end)) => {
                seen.processed();
                self.end(end)
            }
            Some(Fault::HalfHead(end)) => {
                seen.processed();
                self.write(b"HTTP/1.1 200 OK\r\ncontent-le").await?;
                self.end(end)
            }
            Some(Fault::Slow { processed }) => {
                if processed {
                    seen.processed();
                }
                gone(&mut self.socket).await?;
                // To nobody, as a server does that has not noticed.
                self.answer(seen, head, 200).await
            }
            Some(Fault::Garbage) => {
                seen.processed();
                self.write(b"\x00\x01 what is this\r\n\r\n").await?;
                self.end(End::Close)
            }
            Some(Fault::Refusal(refusal)) => self.refuse(seen, head, &refusal).await,
            Some(Fault::Redirect(status, _)) => {
                seen.processed();
                let headers = [("location", hop_url(plan))];
                let keep = plan.keeps_connection(seen.attempt);
                self.write(&empty(seen, status, &headers, keep)).await?;
                Ok(keep)
            }
            Some(Fault::BrokenBody { chunked, end }) if head.method != Method::HEAD => {
                seen.processed();
                self.break_off(seen, chunked, end).await
            }
            Some(Fault::BrokenBody { .. }) => {
                seen.processed();
                self.answer(seen, head, 200).await
            }
            None => {
                seen.processed();
                self.answer(seen, head, plan.answer.status).await
            }
            // The rest strikes before a request can come here, or is HTTP/2's.
            Some(_) => self.end(End::Close),
        }
    }

    /// The next hop of a redirect.
    async fn hop(&mut self, head: &Head, seen: &Seen) -> io::Result<bool> {
        let body = self.read(head, usize::MAX).await?;
        seen.whole(&body);
        match seen.fault() {
            Some(Fault::Redirect(_, Hop::Works)) => self.answer(seen, head, 200).await,
            _ => self.end(End::Close),
        }
    }

    async fn answer(&mut self, seen: &Seen, head: &Head, status: u16) -> io::Result<bool> {
        let answer = seen.plan().answer;
        let keep = head.path != HOP && seen.plan().keeps_connection(seen.attempt);
        let framing = match answer.framing {
            Framing::UntilClose if keep => Framing::Length,
            framing => framing,
        };
        if answer.hint {
            self.write(b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n")
                .await?;
        }
        let length = answer.body.length;
        self.write(&head_of(seen, status, &[], framing, length, keep))
            .await?;
        if head.method != Method::HEAD {
            self.write_body(&answer.body.bytes(), framing).await?;
        }
        if !keep {
            self.socket.shutdown().await?;
        }
        Ok(keep)
    }

    async fn refuse(&mut self, seen: &Seen, head: &Head, refusal: &Refusal) -> io::Result<bool> {
        if refusal.processed {
            seen.processed();
        }
        let keep = seen.plan().keeps_connection(seen.attempt);
        let (framing, length) = (Framing::Length, refusal.body.length);
        let headers = refusal.headers();
        self.write(&head_of(
            seen,
            refusal.status,
            &headers,
            framing,
            length,
            keep,
        ))
        .await?;
        if head.method != Method::HEAD {
            if let Some(late) = refusal.late {
                tokio::time::sleep(late).await;
            }
            self.write_body(&refusal.body.bytes(), framing).await?;
        }
        Ok(keep)
    }

    async fn break_off(&mut self, seen: &Seen, chunked: bool, end: End) -> io::Result<bool> {
        let body = seen.plan().answer.body.bytes();
        let framing = if chunked {
            Framing::Chunked
        } else {
            Framing::Length
        };
        let mut bytes = head_of(seen, 200, &[], framing, body.len() + 1, false);
        if chunked {
            // A chunk that says it is longer than it is.
            bytes.extend_from_slice(format!("{:x}\r\n", body.len() + 1).as_bytes());
        }
        bytes.extend_from_slice(&body);
        self.write(&bytes).await?;
        self.end(end)
    }

    async fn write_body(&mut self, body: &[u8], framing: Framing) -> io::Result<()> {
        if framing != Framing::Chunked {
            return self.write(body).await;
        }
        for piece in body.chunks(10_000) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.write(&chunk).await?;
        }
        self.write(b"0\r\n\r\n").await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await?;
        self.socket.flush().await
    }

    /// The connection ends when it is dropped; what is unread makes the kernel reset it.
    fn end(&mut self, end: End) -> io::Result<bool> {
        if end == End::Reset {
            self.socket.tcp().set_zero_linger()?;
        }
        Ok(false)
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.socket.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The head of the next request; `None` where there is none.
    async fn head(&mut self) -> io::Result<Option<Head>> {
        while self.buffer.is_empty() {
            if self.socket.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
        loop {
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = self.buffer.split_to(end + 4);
                return parse(&head)
                    .map(Some)
                    .ok_or_else(|| io::ErrorKind::InvalidData.into());
            }
            self.more().await?;
        }
    }

    /// Reads the body of a request, or the first so many bytes of it.
    async fn read(&mut self, head: &Head, limit: usize) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        if head.headers.contains_key("transfer-encoding") {
            while body.len() < limit {
                let size = self.line().await?;
                let size = str::from_utf8(&size).ok();
                let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
                let size = size.ok_or(io::ErrorKind::InvalidData)?;
                self.take(&mut body, size).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = head.headers.get("content-length") {
            let length = length.to_str().ok().and_then(|length| length.parse().ok());
            let length: usize = length.ok_or(io::ErrorKind::InvalidData)?;
            self.take(&mut body, length.min(limit)).await?;
        }
        Ok(body.freeze())
    }

    async fn line(&mut self) -> io::Result<BytesMut> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = self.buffer.split_to(end);
                self.buffer.advance(2);
                return Ok(line);
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, into: &mut BytesMut, mut length: usize) -> io::Result<()> {
        while length > 0 {
            if self.buffer.is_empty() {
                self.more().await?;
            }
            let piece = self.buffer.split_to(length.min(self.buffer.len()));
            length -= piece.len();
            into.extend_from_slice(&piece);
        }
        Ok(())
    }
}

/// The head of an answer, with what says whose it is.
fn head_of(
    seen: &Seen,
    status: u16,
    headers: &[(&str, String)],
    framing: Framing,
    length: usize,
    keep: bool,
) -> Vec<u8> {
    let (id, attempt) = (seen.plan().id, seen.attempt);
    let mut text =
        format!("HTTP/1.1 {status} As planned\r\n{SEND}: {id}\r\n{ATTEMPT}: {attempt}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    match framing {
        Framing::Length => text += &format!("content-length: {length}\r\n"),
        Framing::Chunked => text += "transfer-encoding: chunked\r\n",
        Framing::UntilClose => {}
    }
    if !keep {
        text += "connection: close\r\n";
    }
    text += "\r\n";
    text.into_bytes()
}

/// An answer without a body.
fn empty(seen: &Seen, status: u16, headers: &[(&str, String)], keep: bool) -> Vec<u8> {
    head_of(seen, status, headers, Framing::Length, 0, keep)
}

impl Refusal {
    /// What is said in the head of the answer.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let said = self.said.map(|said| ("x-should-retry", said.to_string()));
        self.asked.headers().into_iter().chain(said).collect()
    }
}

fn parse(head: &[u8]) -> Option<Head> {
    let text = str::from_utf8(head).ok()?;
    let mut lines = text.trim_end().split("\r\n");
    let mut words = lines.next()?.split(' ');
    let method = words.next()?.parse().ok()?;
    let path = words.next()?.to_owned();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name: HeaderName = name.parse().ok()?;
        let value: HeaderValue = value.trim().parse().ok()?;
        headers.append(name, value);
    }
    Some(Head {
        method,
        path,
        headers,
    })
}
