//! Real certificates, made when a test first asks for one.

use std::sync::{Arc, LazyLock};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Who vouches for a certificate.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// The one that [`trusting`] clients and servers trust.
static TRUSTED: LazyLock<Authority> = LazyLock::new(|| Authority::new("trusted"));
/// One that nobody trusts.
static STRANGER: LazyLock<Authority> = LazyLock::new(|| Authority::new("stranger"));

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }
}

/// What a server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cert {
    /// For 127.0.0.1, `localhost`, `target.test` and `*.servers.test`, by an authority that clients
    /// trust.
    Good,
    Expired,
    NotYetValid,
    /// For another name.
    WrongName,
    /// By an authority that nobody trusts.
    Untrusted,
}

/// The making of a server's side of TLS.
#[derive(Clone)]
pub struct Tls {
    cert: Cert,
    versions: Vec<&'static SupportedProtocolVersion>,
    alpn: Vec<Vec<u8>>,
    client_certificate: bool,
}

impl Tls {
    /// TLS 1.2 and 1.3, no ALPN, no client certificate.
    pub fn new(cert: Cert) -> Tls {
        Tls {
            cert,
            versions: vec![&rustls::version::TLS13, &rustls::version::TLS12],
            alpn: Vec::new(),
            client_certificate: false,
        }
    }

    pub fn only(mut self, version: &'static SupportedProtocolVersion) -> Tls {
        self.versions = vec![version];
        self
    }

    pub fn alpn(mut self, protocol: &str) -> Tls {
        self.alpn.push(protocol.into());
        self
    }

    /// Only clients with a certificate of the trusted authority are let in.
    pub fn demand_client_certificate(mut self) -> Tls {
        self.client_certificate = true;
        self
    }

    pub fn acceptor(self) -> TlsAcceptor {
        super::install_crypto();
        let (chain, key) = issue(self.cert);
        let config = ServerConfig::builder_with_protocol_versions(&self.versions);
        let config = if self.client_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(TRUSTED.certificate.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
                .build()
                .unwrap();
            config.with_client_cert_verifier(verifier)
        } else {
            config.with_no_client_auth()
        };
        let mut config = config.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = self.alpn;
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A client that trusts the test's authority and nobody else.
pub fn trusting() -> reqwest::ClientBuilder {
    super::client().tls_certs_only([root()])
}

/// The authority's certificate.
pub fn root() -> reqwest::Certificate {
    reqwest::Certificate::from_der(TRUSTED.certificate.der()).unwrap()
}

/// A client's certificate: one that servers accept, or one by a stranger.
pub fn identity(trusted: bool) -> reqwest::Identity {
    let (chain, key) = sign(if trusted { &TRUSTED } else { &STRANGER }, client_params());
    reqwest::Identity::from_pem(format!("{}{}", chain.pem(), key.serialize_pem()).as_bytes())
        .unwrap()
}

/// Accepts; a client that is refused gets to read why, since the connection is held until it goes.
pub async fn accept(
    acceptor: &TlsAcceptor,
    socket: TcpStream,
) -> std::io::Result<TlsStream<TcpStream>> {
    match acceptor.accept(socket).into_fallible().await {
        Ok(stream) => Ok(stream),
        Err((error, mut socket)) => {
            while socket.read(&mut [0; 1024]).await? > 0 {}
            Err(error)
        }
    }
}

/// A fatal alert as it stands on the wire in a handshake.
pub fn alert(description: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, description]
}

fn issue(cert: Cert) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let names = match cert {
        Cert::WrongName => vec!["elsewhere.example"],
        _ => vec!["127.0.0.1", "localhost", "target.test", "*.servers.test"],
    };
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let mut params = CertificateParams::new(names).unwrap();
    match cert {
        Cert::Expired => {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        Cert::NotYetValid => params.not_before = date_time_ymd(4000, 1, 1),
        _ => {}
    }
    let by = if cert == Cert::Untrusted {
        &STRANGER
    } else {
        &TRUSTED
    };
    let (certificate, key) = sign(by, params);
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    (vec![certificate.der().clone()], key.into())
}

fn client_params() -> CertificateParams {
    CertificateParams::new(vec!["client.test".to_owned()]).unwrap()
}

fn sign(by: &Authority, params: CertificateParams) -> (Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &by.issuer).unwrap(), key)
}
