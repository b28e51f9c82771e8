//! Sends over native-tls, which is OpenSSL here, through the middleware.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use beside_native_tls::{Demands, Server, key_pem, pem};
use reqwest::Method;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error};
use reqwest_retry_rules::{RetryMiddleware, RetryRule, TransportError, classify, client_builder};

const PASSING: Demands = Demands {
    certificate: false,
    tls12: false,
    http2: false,
};

fn client(trusting: bool) -> ClientWithMiddleware {
    if trusting {
        retrying(trusting_builder())
    } else {
        retrying(client_builder())
    }
}

/// A client with a certificate that the server does not accept.
fn with_certificate() -> ClientWithMiddleware {
    let (certificate, key) = (pem(), key_pem());
    let identity = reqwest::Identity::from_pkcs8_pem(&certificate, &key).unwrap();
    retrying(trusting_builder().identity(identity))
}

fn trusting_builder() -> reqwest::ClientBuilder {
    let root = reqwest::Certificate::from_pem(&pem()).unwrap();
    client_builder().tls_certs_merge([root])
}

/// Whatever is unsent is sent again, and what may have been sent if it is a GET.
fn retrying(client: reqwest::ClientBuilder) -> ClientWithMiddleware {
    let rule = RetryRule {
        unsent_failures: true,
        ..RetryRule::transient()
    };
    ClientBuilder::new(client.no_proxy().build().unwrap())
        .with(RetryMiddleware::new(rule))
        .build()
}

async fn failed(client: &ClientWithMiddleware, method: &Method, url: &str) -> Error {
    let request = client.request(method.clone(), url).body("order");
    request.send().await.unwrap_err()
}

/// A GET and a POST each fail because of a certificate, over one connection.
async fn fail_at_a_certificate(client: ClientWithMiddleware, demands: Demands) {
    for method in [Method::GET, Method::POST] {
        let server = Server::start(demands, &[200]);
        let error = failed(&client, &method, &server.url()).await;
        assert_eq!(
            classify(&error),
            Some(TransportError::Certificate),
            "{method}: {error:?}"
        );
        assert_eq!(server.connections(), 1, "{method}");
    }
}

#[tokio::test]
async fn an_untrusted_certificate_costs_one_connection() {
    fail_at_a_certificate(client(false), PASSING).await;
}

#[tokio::test]
async fn a_client_certificate_that_is_demanded_costs_one_connection_after_the_handshake() {
    let demands = Demands {
        certificate: true,
        ..PASSING
    };
    fail_at_a_certificate(client(true), demands).await;
}

/// hyper keeps nothing of an alert that comes before it has written the request, but knows then that
/// it has not: that is unsent, and the next attempt tells.
#[tokio::test]
async fn a_client_certificate_that_is_demanded_over_http2_ends_at_the_certificate_or_unsent() {
    let demands = Demands {
        certificate: true,
        http2: true,
        ..PASSING
    };
    for method in [Method::GET, Method::POST] {
        let server = Server::start(demands, &[200]);
        let error = failed(&client(true), &method, &server.url()).await;
        match classify(&error) {
            Some(TransportError::Certificate) => {}
            Some(TransportError::NotProcessed) => assert_eq!(server.connections(), 4, "{method}"),
            other => panic!("{method}: {other:?}, {error:?}"),
        }
        assert_eq!(server.requests(), 0, "{method}");
    }
}

/// Before TLS 1.3 the alert is `handshake_failure`, which says nothing of a certificate.
#[tokio::test]
async fn a_client_certificate_that_is_demanded_under_tls_1_2_is_unsent() {
    let demands = Demands {
        certificate: true,
        tls12: true,
        ..PASSING
    };
    let server = Server::start(demands, &[200]);
    let error = failed(&client(true), &Method::GET, &server.url()).await;
    assert_eq!(classify(&error), Some(TransportError::Connect), "{error:?}");
    assert_eq!((server.connections(), server.requests()), (4, 0));
}

#[tokio::test]
async fn a_client_certificate_that_is_refused_costs_one_connection() {
    for tls12 in [false, true] {
        let demands = Demands {
            certificate: true,
            tls12,
            ..PASSING
        };
        fail_at_a_certificate(with_certificate(), demands).await;
    }
}

#[tokio::test]
async fn a_trusted_server_gets_a_post_once() {
    let server = Server::start(PASSING, &[200]);
    let answer = client(true).post(server.url()).body("order").send().await;
    assert_eq!(answer.unwrap().status(), 200);
    assert_eq!((server.connections(), server.requests()), (1, 1));
}

#[tokio::test]
async fn a_get_is_sent_again_after_a_503_and_a_lost_answer() {
    let server = Server::start(PASSING, &[503, 0, 200]);
    let answer = client(true).get(server.url()).send().await;
    assert_eq!(answer.unwrap().status(), 200);
    assert_eq!((server.connections(), server.requests()), (3, 3));
}

#[tokio::test]
async fn a_post_whose_answer_is_lost_is_sent_once() {
    let server = Server::start(PASSING, &[0, 200]);
    let error = failed(&client(true), &Method::POST, &server.url()).await;
    assert_eq!(classify(&error), Some(TransportError::Closed), "{error:?}");
    assert_eq!((server.connections(), server.requests()), (1, 1));
}

/// What breaks off in the handshake is unsent, and goes again.
#[tokio::test]
async fn a_post_goes_again_after_a_handshake_that_was_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let closing = thread::spawn(move || {
        for _ in 0..4 {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 4096]);
        }
    });
    let error = failed(&client(true), &Method::POST, &url).await;
    let class = classify(&error).unwrap();
    assert!(class.is_unsent(), "{class:?}: {error:?}");
    closing.join().unwrap();
}

/// It says nothing of the peer what the wire does to it.
#[tokio::test]
async fn plain_text_where_tls_was_asked_for_is_unsent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error = failed(&client(true), &Method::GET, &url).await;
    assert_eq!(classify(&error), Some(TransportError::Connect), "{error:?}");
}
