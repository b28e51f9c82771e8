//! Faults of proxies that were reached.

use reqwest::Method;

use super::{Failed, TARGET, lost, via};
use crate::support::proxy::{Act, connect, socks5};
use crate::support::script::End;

pub async fn proxy_demands_credentials(method: Method) -> Failed {
    tunnel(Act::Refuse(407), method).await
}

pub async fn proxy_forbids(method: Method) -> Failed {
    tunnel(Act::Refuse(403), method).await
}

pub async fn proxy_finds_no_way(method: Method) -> Failed {
    tunnel(Act::Refuse(502), method).await
}

pub async fn proxy_closes(method: Method) -> Failed {
    tunnel(Act::Say(Vec::new(), End::Close), method).await
}

pub async fn proxy_resets(method: Method) -> Failed {
    tunnel(Act::Say(Vec::new(), End::Reset), method).await
}

pub async fn proxy_answers_garbage(method: Method) -> Failed {
    tunnel(Act::Say(b"what is this\r\n\r\n".into(), End::Stall), method).await
}

pub async fn proxy_answers_without_end(method: Method) -> Failed {
    let head = format!("HTTP/1.1 200 OK\r\nx-long: {}", "x".repeat(10_000));
    tunnel(Act::Say(head.into(), End::Stall), method).await
}

pub async fn socks_proxy_refuses(method: Method) -> Failed {
    socks(Act::Refuse(5), method).await
}

pub async fn socks_proxy_demands_credentials(method: Method) -> Failed {
    socks(Act::Say(vec![5, 0xff], End::Stall), method).await
}

pub async fn socks_proxy_closes(method: Method) -> Failed {
    socks(Act::Say(Vec::new(), End::Close), method).await
}

pub async fn socks_proxy_resets(method: Method) -> Failed {
    socks(Act::Say(Vec::new(), End::Reset), method).await
}

pub async fn socks_proxy_answers_garbage(method: Method) -> Failed {
    socks(
        Act::Say(b"HTTP/1.1 400 What\r\n\r\n".into(), End::Stall),
        method,
    )
    .await
}

async fn tunnel(act: Act, method: Method) -> Failed {
    let proxy = connect(act).await;
    lost(via(proxy.url("http", "")), method, TARGET).await
}

async fn socks(act: Act, method: Method) -> Failed {
    let proxy = socks5(act).await;
    lost(via(proxy.url("socks5h", "")), method, TARGET).await
}
