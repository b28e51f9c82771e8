//! A way to a server that takes time: a TCP proxy on loopback that passes bytes on late.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Starts one that leads to `server`, and says where. What is sent arrives after `one_way`, in
/// either direction.
pub async fn away(server: SocketAddr, one_way: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            // Loopback has connected at once. Over a real distance a connection is there, and its
            // first bytes are sent, after one way there and one back.
            let connected = Instant::now() + one_way * 2;
            tokio::spawn(async move {
                let Ok(far) = TcpStream::connect(server).await else {
                    return;
                };
                near.set_nodelay(true).ok();
                far.set_nodelay(true).ok();
                let (from_near, to_near) = near.into_split();
                let (from_far, to_far) = far.into_split();
                tokio::join!(
                    pass_on(from_near, to_far, one_way, connected),
                    pass_on(from_far, to_near, one_way, connected),
                );
            });
        }
    });
    address
}

/// Passes on every piece when it has come and `one_way` is over. A piece does not wait for the one
/// before it to be written, so the delays do not add up.
async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    one_way: Duration,
    connected: Instant,
) {
    let (sender, mut pieces) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async move {
        let mut buffer = [0; 16 * 1024];
        // An end is sent on like bytes, as none of them.
        while let Ok(read) = from.read(&mut buffer).await {
            let due = Instant::now().max(connected) + one_way;
            if sender.send((due, buffer[..read].to_vec())).is_err() || read == 0 {
                break;
            }
        }
    };
    let writing = async move {
        while let Some((due, piece)) = pieces.recv().await {
            sleep_until(due).await;
            if piece.is_empty() || to.write_all(&piece).await.is_err() {
                break;
            }
        }
        to.shutdown().await.ok();
    };
    tokio::join!(reading, writing);
}
