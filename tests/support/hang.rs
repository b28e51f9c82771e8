//! A port on which connecting hangs.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// A listener whose accept queue is full, so that the kernel drops every further SYN.
pub struct Hang {
    pub addr: SocketAddr,
    listener: TcpListener,
    queued: Vec<TcpStream>,
}

impl Hang {
    pub async fn start() -> Hang {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let addr = listener.local_addr().unwrap();
        let (mut queued, mut dropped) = (Vec::new(), 0);
        // On a busy machine a SYN may take so long too, but hardly time and again.
        while dropped < 3 {
            match timeout(Duration::from_millis(30), TcpStream::connect(addr)).await {
                Ok(stream) => {
                    queued.push(stream.unwrap());
                    dropped = 0;
                }
                Err(_) => dropped += 1,
            }
        }
        Hang {
            addr,
            listener,
            queued,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// From here on the port accepts; hand the listener to a server. A client that is waiting gets
    /// through when the kernel sends its SYN again, a second later at the earliest.
    pub async fn release(self) -> TcpListener {
        for _ in &self.queued {
            let _ = self.listener.accept().await;
        }
        self.listener
    }
}
