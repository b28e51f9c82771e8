//! Faults of finding and reaching the peer.

use reqwest::Method;

use crate::support::client;
use crate::support::proxy::{Act, socks5};
use crate::support::refused::Refused;
use crate::support::resolver::Names;
use crate::{Failed, TARGET, lost, via};

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

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_that_is_not_there() {
    let client = client().unix_socket("/nowhere/at/all");
    let error = crate::send(client, Method::GET, "http://target.test/")
        .await
        .unwrap_err();
    let connect = Some(reqwest_retry_rules::TransportError::Connect);
    assert_eq!(reqwest_retry_rules::classify(&error), connect, "{error:?}");
}
