//! A port that refuses, and may come up later.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// A port that is bound and does not listen, so that connecting to it is refused and nobody else
/// can take it.
pub struct Refused {
    pub addr: SocketAddr,
    socket: TcpSocket,
}

impl Refused {
    pub fn new() -> Refused {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Refused {
            addr: socket.local_addr().unwrap(),
            socket,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// From here on the port accepts; hand the listener to a server.
    pub fn come_up(self) -> TcpListener {
        self.socket.listen(1024).unwrap()
    }
}
