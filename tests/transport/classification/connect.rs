//! Faults of finding and reaching the peer.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind::ConnectionReset};

use reqwest::Method;
use reqwest_retry_rules::{TransportError, classify};

use super::{Failed, TARGET, lost, send, via};
use crate::support::client;
use crate::support::connector::FailingConnector;
use crate::support::proxy::{Act, socks5};
use crate::support::refused::Refused;
use crate::support::resolver::Names;

pub async fn connection_refused(method: Method) -> Failed {
    let nobody = Refused::new();
    lost(client(), method, nobody.url("/")).await
}

pub async fn proxy_refuses_connections(method: Method) -> Failed {
    let nobody = Refused::new();
    lost(via(nobody.url("")), method, TARGET).await
}

pub async fn socks_proxy_refuses_connections(method: Method) -> Failed {
    let nobody = Refused::new();
    lost(
        via(nobody.url("").replace("http:", "socks5h:")),
        method,
        TARGET,
    )
    .await
}

pub async fn name_not_resolved(method: Method) -> Failed {
    lost(
        client().dns_resolver(Names::new()),
        method,
        "http://nowhere.test/",
    )
    .await
}

pub async fn proxy_not_resolved(method: Method) -> Failed {
    let proxy = "http://nowhere.test:8080".to_owned();
    lost(via(proxy).dns_resolver(Names::new()), method, TARGET).await
}

pub async fn name_not_resolved_for_a_socks_proxy(method: Method) -> Failed {
    let proxy = socks5(Act::Tunnel).await;
    lost(
        via(proxy.url("socks5", "")).dns_resolver(Names::new()),
        method,
        TARGET,
    )
    .await
}

/// The kernel can be made to refuse, not to reset while connecting; hyper-util words both the same.
pub async fn connection_reset_while_connecting(method: Method) -> Failed {
    let reset = FailingConnector::new(|| async { TcpConnect(ConnectionReset.into()).into() });
    lost(client().connector_layer(reset), method, TARGET).await
}

#[derive(Debug)]
struct TcpConnect(io::Error);

impl fmt::Display for TcpConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tcp connect error")
    }
}

impl Error for TcpConnect {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_that_is_not_there() {
    let client = client().unix_socket("/nowhere/at/all");
    let error = send(client, Method::GET, "http://target.test/")
        .await
        .unwrap_err();
    assert_eq!(classify(&error), Some(TransportError::Connect), "{error:?}");
}
