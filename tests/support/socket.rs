//! What the servers do to a socket besides reading and writing.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;

use super::script::End;

/// A stream over TCP that can be reset.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send {
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// The socket under a connection, shared so that frames can be put in between.
pub struct Tap<S>(Arc<Inner<S>>);

struct Inner<S> {
    socket: Mutex<S>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Frozen,
    Ended(End),
}

impl<S> Clone for Tap<S> {
    fn clone(&self) -> Self {
        Tap(self.0.clone())
    }
}

impl<S: Socket> Tap<S> {
    pub fn new(socket: S) -> Tap<S> {
        Tap(Arc::new(Inner {
            socket: Mutex::new(socket),
            state: Mutex::new(State::Open),
            changed: Notify::new(),
        }))
    }

    /// Writes bytes of the test's own. The connection writes and flushes whole frames, and is idle
    /// while a script plays.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut tap = self.clone();
        tap.write_all(bytes).await?;
        tap.flush().await
    }

    /// From here on [`Tap::ended`] is ready.
    pub fn end(&self, end: End) {
        *self.0.state.lock().unwrap() = State::Ended(end);
        self.0.changed.notify_one();
    }

    /// From here on nothing is read or written.
    pub fn freeze(&self) {
        *self.0.state.lock().unwrap() = State::Frozen;
    }

    /// Waits for the end.
    pub async fn ended(&self) {
        while !matches!(self.state(), State::Ended(_)) {
            self.0.changed.notified().await;
        }
    }

    fn state(&self) -> State {
        *self.0.state.lock().unwrap()
    }

    /// Ends the connection as it was told to.
    pub async fn finish(&self) {
        match self.state() {
            State::Ended(End::Reset) => {
                let _ = self.0.socket.lock().unwrap().tcp().set_zero_linger();
            }
            _ => {
                let _ = self.clone().shutdown().await;
            }
        }
    }
}

impl<S: Socket> AsyncRead for Tap<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut *self.0.socket.lock().unwrap()).poll_read(cx, buf));
        if self.state() == State::Frozen {
            return Poll::Pending;
        }
        Poll::Ready(read)
    }
}

impl<S: Socket> AsyncWrite for Tap<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.state() == State::Frozen {
            return Poll::Pending;
        }
        Pin::new(&mut *self.0.socket.lock().unwrap()).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.socket.lock().unwrap()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.socket.lock().unwrap()).poll_shutdown(cx)
    }
}
