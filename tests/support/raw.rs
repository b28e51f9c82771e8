//! A server on bare TCP, for faults that come before HTTP.

use std::future::Future;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::log::Log;
use super::script::End;

/// The server. It goes when this is dropped. It derefs to its [`Log`], which counts connections.
pub struct Raw {
    pub addr: SocketAddr,
    log: Log,
    accepting: JoinHandle<()>,
}

impl Raw {
    /// A server that hands each connection, with its number, to `serve`.
    pub async fn start<F, S>(serve: S) -> Raw
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
        S: Fn(TcpStream, usize, Log) -> F + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, log, serve) = (
            listener.local_addr().unwrap(),
            Log::default(),
            Arc::new(serve),
        );
        let shared = log.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((socket, _)) = listener.accept().await else {
                    continue;
                };
                let _ = socket.set_nodelay(true);
                let guard = shared.accepted();
                let served = serve(socket, guard.number, shared.clone());
                connections.spawn(async move {
                    let _guard = guard;
                    let _ = served.await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Raw {
            addr,
            log,
            accepting,
        }
    }

    /// Reads what the client sends first, writes `answer` and ends.
    pub async fn answering(answer: impl Into<Bytes>, end: End) -> Raw {
        let answer = answer.into();
        Raw::start(move |mut socket, _, _| {
            let answer = answer.clone();
            async move {
                if socket.read(&mut [0; 64 * 1024]).await? > 0 {
                    socket.write_all(&answer).await?;
                }
                finish(socket, end).await
            }
        })
        .await
    }

    pub fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.addr)
    }
}

impl Deref for Raw {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Ends a connection; [`End::Keep`] holds it like [`End::Stall`].
pub async fn finish(mut socket: TcpStream, end: End) -> std::io::Result<()> {
    match end {
        End::Close => socket.shutdown().await,
        End::Reset => socket.set_zero_linger(),
        End::Keep | End::Stall => {
            while socket.read(&mut [0; 1024]).await? > 0 {}
            Ok(())
        }
    }
}
