//! A server of HTTP/2 that does to each request what its plan says.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::Reason;
use h2::server::SendResponse;
use http::{Method, Request, Response};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::fault::{End, Fault, Hop, Refusal};
use super::ledger::{ATTEMPT, Connection, HOP, SEND, Seen};
use super::plan::Framing;
use super::world::{at_most, hop_url};
use crate::support::script;
use crate::support::socket::{Socket, Tap};

/// Streams beyond this many are refused by the server's HTTP/2 itself, until the client has heard of
/// it.
const STREAMS: u32 = 12;

pub async fn serve<S: Socket + 'static>(socket: S, guard: Connection) -> io::Result<()> {
    let (tap, leave) = (Tap::new(socket), Arc::new(Notify::new()));
    let mut connection = h2::server::Builder::new()
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 24)
        .max_concurrent_streams(STREAMS)
        .handshake::<_, Bytes>(tap.clone())
        .await
        .map_err(io::Error::other)?;
    let mut streams = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = tap.ended() => {
                guard.ledger.cuts(guard.number);
                tap.finish().await;
                return Ok(());
            }
            () = leave.notified() => {
                guard.ledger.leaves(guard.number);
                connection.graceful_shutdown();
                continue;
            }
            accepted = connection.accept() => accepted,
            // What is done for streams that are gone.
            Some(_) = streams.join_next() => continue,
        };
        let Some(Ok((request, respond))) = accepted else {
            // It can end under a stream whose answer is still to come, also where the server had
            // only said that it takes no more.
            while streams.try_join_next().is_some() {}
            if !streams.is_empty() {
                guard.ledger.cuts(guard.number);
            }
            return Ok(());
        };
        let (head, body) = request.into_parts();
        let seen = guard
            .ledger
            .saw(&head.method, head.uri.path(), &head.headers, guard.number);
        let Some(seen) = seen else {
            return Ok(());
        };
        let stream = Stream {
            is_hop: head.uri.path() == HOP,
            bare: head.method == Method::HEAD,
            seen,
            respond,
            tap: tap.clone(),
            leave: Arc::clone(&leave),
        };
        streams.spawn(async move {
            let request = Request::from_parts(head, body);
            // A client that goes away is what this is for.
            let _ = at_most(stream.play(request.into_body())).await;
        });
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One request, and the means to answer it.
struct Stream<S> {
    is_hop: bool,
    /// Whether the answer has no body.
    bare: bool,
    seen: Seen,
    respond: SendResponse<Bytes>,
    tap: Tap<S>,
    /// Tells the connection that it is to take no more.
    leave: Arc<Notify>,
}

impl<S: Socket> Stream<S> {
    async fn play(mut self, mut body: h2::RecvStream) -> Result<(), Failure> {
        let fault = self.seen.fault();
        let length = self.seen.plan().content.bytes.length;
        if self.is_hop {
            let body = read(&mut body, usize::MAX).await?;
            self.seen.whole(&body);
            return match fault {
                Some(Fault::Redirect(_, Hop::Works)) => self.answer(200).await,
                _ => self.end(End::Close),
            };
        }
        match fault {
            Some(Fault::Unread(end)) => return self.end(end),
            Some(Fault::HalfRead(end)) => {
                read(&mut body, length / 2).await?;
                return self.end(end);
            }
            Some(Fault::Early) => {
                let head = self.head(503).body(())?;
                self.respond.send_response(head, true)?;
                return Ok(());
            }
            Some(Fault::EarlyBusy) => {
                let head = self.head(429).body(())?;
                self.respond.send_response(head, true)?;
                let body = read(&mut body, usize::MAX).await?;
                self.seen.whole(&body);
                return Ok(());
            }
            Some(Fault::StreamRefused { read: false }) => {
                self.respond.send_reset(Reason::REFUSED_STREAM);
                return Ok(());
            }
            Some(Fault::LeftOut {
                reason,
                read: false,
            }) => return self.leave_out(reason).await,
            _ => {}
        }
        let body = read(&mut body, usize::MAX).await?;
        self.seen.whole(&body);
        match fault {
            Some(Fault::Lost(end)) => {
                self.seen.processed();
                self.end(end)
            }
            Some(Fault::Slow { processed }) => {
                if processed {
                    self.seen.processed();
                }
                std::future::poll_fn(|cx| self.respond.poll_reset(cx)).await?;
                Ok(())
            }
            Some(Fault::Garbage) => {
                self.seen.processed();
                // A PING of one byte; it has eight.
                self.tap.write(&[0, 0, 1, 6, 0, 0, 0, 0, 0, 1]).await?;
                std::future::pending::<()>().await;
                Ok(())
            }
            Some(Fault::Refusal(refusal)) => self.refuse(&refusal).await,
            Some(Fault::Redirect(status, _)) => {
                self.seen.processed();
                let location = hop_url(self.seen.plan());
                let head = self.head(status).header("location", location).body(())?;
                self.respond.send_response(head, true)?;
                Ok(())
            }
            Some(Fault::BrokenBody { end, .. }) if !self.bare => {
                self.seen.processed();
                self.break_off(end).await
            }
            Some(Fault::BrokenBody { .. }) => {
                self.seen.processed();
                self.answer(200).await
            }
            Some(Fault::StreamRefused { .. }) => {
                self.respond.send_reset(Reason::REFUSED_STREAM);
                Ok(())
            }
            Some(Fault::LeftOut { reason, .. }) => self.leave_out(reason).await,
            Some(Fault::GoneAway { reason }) => {
                self.seen.processed();
                let covered = self.respond.stream_id().into();
                self.go_away(covered, reason).await?;
                self.end(End::Close)
            }
            Some(Fault::StreamReset { reason, processed }) => {
                if processed {
                    self.seen.processed();
                }
                self.respond.send_reset(reason.into());
                Ok(())
            }
            None => {
                self.seen.processed();
                self.answer(self.seen.plan().answer.status).await
            }
            // The rest strikes before a request can come here, or is HTTP/1.1's.
            Some(_) => self.end(End::Close),
        }
    }

    async fn answer(&mut self, status: u16) -> Result<(), Failure> {
        let plan = self.seen.plan();
        let answer = plan.answer;
        let mut head = self.head(status);
        if answer.framing == Framing::Length {
            head = head.header("content-length", answer.body.length);
        }
        let mut stream = self.respond.send_response(head.body(())?, self.bare)?;
        if !self.bare {
            stream.send_data(answer.body.bytes(), true)?;
        }
        // A connection that only this send uses is of no more use.
        if answer.parting || plan.road.is_own() {
            self.leave.notify_one();
        }
        Ok(())
    }

    async fn refuse(&mut self, refusal: &Refusal) -> Result<(), Failure> {
        if refusal.processed {
            self.seen.processed();
        }
        let mut head = self
            .head(refusal.status)
            .header("content-length", refusal.body.length);
        for (name, value) in refusal.headers() {
            head = head.header(name, value);
        }
        let mut stream = self.respond.send_response(head.body(())?, self.bare)?;
        if !self.bare {
            if let Some(late) = refusal.late {
                tokio::time::sleep(late).await;
            }
            stream.send_data(refusal.body.bytes(), true)?;
        }
        Ok(())
    }

    async fn break_off(&mut self, end: End) -> Result<(), Failure> {
        let body = self.seen.plan().answer.body.bytes();
        let head = self.head(200).header("content-length", body.len() + 1);
        let mut stream = self.respond.send_response(head.body(())?, false)?;
        stream.send_data(body, false)?;
        // A reset overtakes what is still in the queue.
        tokio::time::sleep(Duration::from_millis(5)).await;
        match end {
            End::Close => stream.send_reset(Reason::INTERNAL_ERROR),
            End::Reset => self.tap.end(script::End::Reset),
        }
        Ok(())
    }

    /// Says that this stream was not processed, and waits for the client to go.
    async fn leave_out(&mut self, reason: u32) -> Result<(), Failure> {
        let stream: u32 = self.respond.stream_id().into();
        self.go_away(stream.saturating_sub(2), reason).await?;
        std::future::pending::<()>().await;
        Ok(())
    }

    async fn go_away(&self, last: u32, reason: u32) -> io::Result<()> {
        let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
        frame.extend_from_slice(&last.to_be_bytes());
        frame.extend_from_slice(&reason.to_be_bytes());
        // The plan has nothing else go on in the connection.
        self.tap.write(&frame).await
    }

    fn end(&self, end: End) -> Result<(), Failure> {
        self.tap.end(match end {
            End::Close => script::End::Close,
            End::Reset => script::End::Reset,
        });
        Ok(())
    }

    /// The head of an answer, with what says whose it is.
    fn head(&self, status: u16) -> http::response::Builder {
        Response::builder()
            .status(status)
            .header(SEND, self.seen.plan().id)
            .header(ATTEMPT, self.seen.attempt)
    }
}

/// Reads the body of a request, or the first so many bytes of it.
async fn read(stream: &mut h2::RecvStream, limit: usize) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    while body.len() < limit {
        let Some(piece) = stream.data().await else {
            break;
        };
        let piece = piece?;
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len())?;
    }
    Ok(body.freeze())
}
