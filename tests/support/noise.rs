//! A man in the middle who spoils TLS on its way.

use std::io;
use std::net::SocketAddr;

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
    /// The server's next one after this many requests came to it whole.
    Answer(Log, usize),
    /// None.
    Nothing,
}

impl Spoilt {
    fn hits(&self, from_client: bool, encrypted: usize) -> bool {
        match self {
            Spoilt::Request(number) => from_client && encrypted == *number,
            Spoilt::Answer(log, requests) => !from_client && log.count() >= *requests,
            Spoilt::Nothing => false,
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

/// Passes records on until the end of either side.
async fn pass_on(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    noise: Noise,
    spoilt: &Spoilt,
    from_client: bool,
) -> io::Result<()> {
    const ENCRYPTED: u8 = 23;
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
        if head[0] == ENCRYPTED && !over && spoilt.hits(from_client, encrypted) {
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
