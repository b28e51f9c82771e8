//! A CONNECT proxy and a SOCKS5 proxy, real ones.

use std::io;
use std::net::SocketAddr;

use bytes::BytesMut;
use http::{HeaderMap, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use super::log::{Log, Received};
use super::raw::{Raw, finish};
use super::script::End;

/// What the proxy does with a client that wants a tunnel.
#[derive(Clone, Debug)]
pub enum Act {
    /// Opens the tunnel.
    Tunnel,
    /// Opens the tunnel to this address, whatever the client asked for.
    TunnelTo(SocketAddr),
    /// CONNECT: this status. SOCKS5: this reply code, 5 for "connection refused".
    Refuse(u16),
    /// Says nothing more and ends.
    Say(Vec<u8>, End),
}

/// A CONNECT proxy. Its log holds each client's CONNECT, whose path is the target.
pub async fn connect(act: Act) -> Raw {
    Raw::start(move |socket, number, log| connect_client(socket, number, log, act.clone())).await
}

/// A SOCKS5 proxy without authentication. Its log holds each client's CONNECT, whose path is the
/// target.
pub async fn socks5(act: Act) -> Raw {
    Raw::start(move |socket, number, log| socks5_client(socket, number, log, act.clone())).await
}

async fn connect_client(
    mut client: TcpStream,
    number: usize,
    log: Log,
    act: Act,
) -> io::Result<()> {
    let mut head = BytesMut::new();
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let text = String::from_utf8_lossy(&head);
    let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
    note(&log, number, &target);
    match act {
        Act::Tunnel => {
            let server = TcpStream::connect(&target).await?;
            tunnel(client, server, b"HTTP/1.1 200 OK\r\n\r\n").await
        }
        Act::TunnelTo(addr) => {
            let server = TcpStream::connect(addr).await?;
            tunnel(client, server, b"HTTP/1.1 200 OK\r\n\r\n").await
        }
        Act::Refuse(status) => {
            let answer = format!("HTTP/1.1 {status} Refused\r\ncontent-length: 0\r\n\r\n");
            client.write_all(answer.as_bytes()).await?;
            finish(client, End::Stall).await
        }
        Act::Say(bytes, end) => {
            client.write_all(&bytes).await?;
            finish(client, end).await
        }
    }
}

async fn socks5_client(mut client: TcpStream, number: usize, log: Log, act: Act) -> io::Result<()> {
    if let Act::Say(bytes, end) = &act {
        if client.read(&mut [0; 257]).await? > 0 {
            client.write_all(bytes).await?;
        }
        return finish(client, *end).await;
    }
    let mut greeting = [0; 2];
    client.read_exact(&mut greeting).await?;
    client
        .read_exact(&mut vec![0; usize::from(greeting[1])])
        .await?;
    client.write_all(&[5, 0]).await?;
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let host = match request[3] {
        1 => {
            let mut ip = [0; 4];
            client.read_exact(&mut ip).await?;
            std::net::Ipv4Addr::from(ip).to_string()
        }
        3 => {
            let mut name = vec![0; usize::from(client.read_u8().await?)];
            client.read_exact(&mut name).await?;
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => return Ok(()),
    };
    let target = format!("{host}:{}", client.read_u16().await?);
    note(&log, number, &target);
    let granted = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    match act {
        Act::Tunnel => tunnel(client, TcpStream::connect(&target).await?, &granted).await,
        Act::TunnelTo(addr) => tunnel(client, TcpStream::connect(addr).await?, &granted).await,
        Act::Refuse(code) => {
            client
                .write_all(&[5, code as u8, 0, 1, 0, 0, 0, 0, 0, 0])
                .await?;
            finish(client, End::Stall).await
        }
        Act::Say(..) => Ok(()),
    }
}

async fn tunnel(mut client: TcpStream, mut server: TcpStream, granted: &[u8]) -> io::Result<()> {
    client.write_all(granted).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

fn note(log: &Log, connection: usize, target: &str) {
    log.note_begun();
    log.note(Received {
        connection,
        method: Method::CONNECT,
        path: target.to_owned(),
        headers: HeaderMap::new(),
        body: Default::default(),
    });
}
