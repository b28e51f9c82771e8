//! Between a client and a server: who spoils TLS on its way, and who is slow.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::log::Log;
use super::raw::Raw;

/// What happens to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// One bit of its last byte is flipped.
    Flip,
    /// Plain text stands in its place.
    PlainText,
}

/// Which record it happens to.
#[derive(Clone)]
pub enum Spoilt {
    /// This one of the client's encrypted records, counted from 1. Under TLS 1.2 the first holds
    /// the request, under TLS 1.3 the second, after the end of the handshake.
    Request(usize),
    /// The server's next one after a request came to it whole over the connection.
    Answer(Log),
    /// None.
    Nothing,
}

impl Spoilt {
    /// Whether it is this one, if the server had so many requests before the connection.
    fn is(&self, from_client: bool, encrypted: usize, before: usize) -> bool {
        match self {
            Spoilt::Request(number) => from_client && encrypted == *number,
            Spoilt::Answer(log) => !from_client && log.count() > before,
            Spoilt::Nothing => false,
        }
    }

    fn requests(&self) -> usize {
        match self {
            Spoilt::Answer(log) => log.count(),
            Spoilt::Request(_) | Spoilt::Nothing => 0,
        }
    }
}

/// Stands between its clients and a server that speaks TLS, and spoils one record of each
/// connection.
pub async fn before(server: SocketAddr, noise: Noise, spoilt: Spoilt) -> Raw {
    Raw::start(move |client, _, _| {
        let spoilt = spoilt.clone();
        async move {
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
            let _ = tokio::join!(
                pass_on(&mut from_client, &mut to_server, noise, &spoilt, true),
                pass_on(&mut from_server, &mut to_client, noise, &spoilt, false),
            );
            Ok(())
        }
    })
    .await
}

/// Stands between its clients and a server, and holds back for a while whatever the server writes.
pub async fn late(server: SocketAddr, wait: Duration) -> Raw {
    Raw::start(move |client, _, _| async move {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
        let _ = tokio::join!(tokio::io::copy(&mut from_client, &mut to_server), async {
            let mut buffer = [0; 16 * 1024];
            loop {
                let read = from_server.read(&mut buffer).await?;
                if read == 0 {
                    return to_client.shutdown().await;
                }
                tokio::time::sleep(wait).await;
                to_client.write_all(&buffer[..read]).await?;
            }
        });
        Ok(())
    })
    .await
}

/// Passes records on until the end of either side.
async fn pass_on(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    noise: Noise,
    spoilt: &Spoilt,
    from_client: bool,
) -> io::Result<()> {
    const ENCRYPTED: u8 = 23;
    let before = spoilt.requests();
    let (mut encrypted, mut over) = (0, false);
    loop {
        let mut head = [0; 5];
        if from.read_exact(&mut head).await.is_err() {
            return to.shutdown().await;
        }
        let mut record = head.to_vec();
        record.resize(5 + usize::from(u16::from_be_bytes([head[3], head[4]])), 0);
        from.read_exact(&mut record[5..]).await?;
        encrypted += usize::from(head[0] == ENCRYPTED);
        if head[0] == ENCRYPTED && !over && spoilt.is(from_client, encrypted, before) {
            over = true;
            match noise {
                Noise::Flip => {
                    if let Some(last) = record.last_mut() {
                        *last ^= 1;
                    }
                }
                Noise::PlainText => record = b"HTTP/1.1 502 Bad Gateway\r\n\r\n".to_vec(),
            }
        }
        to.write_all(&record).await?;
    }
}
