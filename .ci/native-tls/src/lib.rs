//! A server behind OpenSSL, on a thread of its own, that counts what comes to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::ssl::{AlpnError, SslAcceptor, SslMethod, SslVerifyMode, SslVersion};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509NameBuilder};

/// A certificate for 127.0.0.1 that vouches for itself: who trusts it trusts the server.
static OWN: LazyLock<(X509, PKey<Private>)> = LazyLock::new(|| {
    let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
    let mut serial = BigNum::new().unwrap();
    serial.rand(64, MsbOption::MAYBE_ZERO, false).unwrap();
    let mut name = X509NameBuilder::new().unwrap();
    name.append_entry_by_text("CN", "beside native-tls")
        .unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder
        .set_serial_number(&serial.to_asn1_integer().unwrap())
        .unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder
        .set_not_before(&Asn1Time::days_from_now(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::days_from_now(1).unwrap())
        .unwrap();
    builder.set_pubkey(&key).unwrap();
    builder
        .append_extension(BasicConstraints::new().critical().ca().build().unwrap())
        .unwrap();
    let host = SubjectAlternativeName::new()
        .ip("127.0.0.1")
        .build(&builder.x509v3_context(None, None))
        .unwrap();
    builder.append_extension(host).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    (builder.build(), key)
});

/// The server's certificate, for clients that are to trust it, or to show it as their own.
pub fn pem() -> Vec<u8> {
    OWN.0.to_pem().unwrap()
}

/// Its key.
pub fn key_pem() -> Vec<u8> {
    OWN.1.private_key_to_pem_pkcs8().unwrap()
}

/// What the server asks of its clients.
#[derive(Clone, Copy, Default)]
pub struct Demands {
    /// A certificate.
    pub certificate: bool,
    /// No newer TLS than 1.2.
    pub tls12: bool,
    /// HTTP/2, of which it speaks no word: its clients do not come as far.
    pub http2: bool,
}

/// The server: it answers one request of a connection with each of its statuses in turn, and goes
/// on with the last of them. 0 ends the connection in place of an answer.
pub struct Server {
    pub addr: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    pub fn start(demands: Demands, statuses: &'static [u16]) -> Server {
        let acceptor = acceptor(demands);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            addr: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let (connections, requests) = (server.connections.clone(), server.requests.clone());
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (acceptor, requests) = (acceptor.clone(), requests.clone());
                thread::spawn(move || serve(&acceptor, socket, &requests, statuses));
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.addr)
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// How many requests came over TLS.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn acceptor(demands: Demands) -> SslAcceptor {
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).unwrap();
    let (certificate, key) = &*OWN;
    builder.set_certificate(certificate).unwrap();
    builder.set_private_key(key).unwrap();
    if demands.certificate {
        builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    }
    if demands.tls12 {
        builder
            .set_max_proto_version(Some(SslVersion::TLS1_2))
            .unwrap();
    }
    if demands.http2 {
        builder.set_alpn_select_callback(|_, offered| {
            openssl::ssl::select_next_proto(b"\x02h2", offered).ok_or(AlpnError::NOACK)
        });
    }
    builder.build()
}

/// Errors are the client's to notice.
fn serve(
    acceptor: &SslAcceptor,
    socket: TcpStream,
    requests: &AtomicUsize,
    statuses: &[u16],
) -> Option<()> {
    let kept = socket.try_clone().ok()?;
    let Ok(mut stream) = acceptor.accept(socket) else {
        // What was sent last is lost if the connection is reset: the client goes first.
        let _ = (&kept).read_to_end(&mut Vec::new());
        return None;
    };
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let number = requests.fetch_add(1, Ordering::SeqCst);
    let status = statuses[number.min(statuses.len() - 1)];
    if status == 0 {
        return None;
    }
    let answer =
        format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).ok()?;
    stream.shutdown().ok()?;
    Some(())
}
