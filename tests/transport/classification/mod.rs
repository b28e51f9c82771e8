//! Every fault in the table of `classify`, made by a real server, with a GET and with a POST.

mod another_request;
mod caller;
mod connect;
mod http1;
mod http2;
mod proxy;
mod races;
mod timeout;
mod tls;
mod tls_noise;
mod twins;
mod wrapped;

use reqwest::{ClientBuilder, Method, StatusCode};
use reqwest_middleware::Error;
use reqwest_retry_rules::TransportError::{self, *};
use reqwest_retry_rules::classify;

use crate::support;

/// What a fault left behind.
struct Failed {
    error: Error,
    /// How many requests the server may have acted upon.
    processed: usize,
}

impl Failed {
    fn new(error: impl Into<Error>, processed: usize) -> Failed {
        Failed {
            error: error.into(),
            processed,
        }
    }
}

/// One row of the table in the documentation.
struct Row {
    fault: &'static str,
    class: Option<TransportError>,
    /// What it is where a feature is off.
    without: Option<(&'static str, Option<TransportError>)>,
}

impl Row {
    /// The class in this build.
    fn expected(&self) -> Option<TransportError> {
        match self.without {
            Some(("rustls", class)) if !cfg!(feature = "rustls") => class,
            Some(("http2", class)) if !cfg!(feature = "http2") => class,
            _ => self.class,
        }
    }

    /// The cells of its row in the table of classes.
    fn cells(&self) -> [String; 3] {
        [
            self.fault.to_owned(),
            name(self.class),
            decided_by(self.class).to_owned(),
        ]
    }

    /// The cells of its row in the table of features, if it has one.
    fn cells_without(&self) -> Option<[String; 3]> {
        let (feature, class) = self.without?;
        Some([self.fault.to_owned(), format!("`{feature}`"), name(class)])
    }
}

fn name(class: Option<TransportError>) -> String {
    class.map_or("none".to_owned(), |class| format!("`{class:?}`"))
}

fn unsent(class: Option<TransportError>) -> bool {
    matches!(
        class,
        Some(Dns | Connect | ConnectTimeout | Tls | Proxy { .. } | NotProcessed)
    )
}

/// What a failure may be before anything was read.
const NEVER_READ: &[Option<TransportError>] = &[Some(NotProcessed), Some(Closed)];

fn decided_by(class: Option<TransportError>) -> &'static str {
    match class {
        None => "comes straight back",
        Some(Certificate | Protocol) => "never",
        Some(ConnectTimeout) => "`timeouts`, `unsent_failures`",
        Some(Proxy { status: Some(_) }) => "`unsent_failures`, `statuses`",
        Some(Timeout) => "`timeouts`, `sent_failures`",
        class if unsent(class) => "`unsent_failures`",
        _ => "`sent_failures`",
    }
}

/// The table: what each fault is, and the functions that make it, each run so many times. Each
/// becomes a test of its name.
macro_rules! faults {
    ($($row:literal: $class:expr $(, without $feature:literal: $less:expr)? => $module:ident {
        $($fault:ident $times:literal;)+
    })+) => {
        const TABLE: &[Row] = &[$(Row {
            fault: $row,
            class: $class,
            without: faults!(@without $($feature, $less)?),
        },)+];

        $($(
            #[tokio::test]
            async fn $fault() {
                for method in [Method::GET, Method::POST] {
                    for _ in 0..$times {
                        check($row, &method, $module::$fault(method.clone()).await);
                    }
                }
            }
        )+)+
    };
    (@without) => { None };
    (@without $feature:literal, $less:expr) => { Some(($feature, $less)) };
}

#[track_caller]
fn check(fault: &str, method: &Method, failed: Failed) {
    let Failed { error, processed } = failed;
    let row = TABLE.iter().find(|row| row.fault == fault).unwrap();
    let class = classify(&error);
    assert_eq!(class, row.expected(), "{fault}, {method}: {error:?}");
    assert!(
        !unsent(class) || processed == 0,
        "{fault}, {method}: it was processed"
    );
    let wrapped = Error::Middleware(anyhow::Error::new(error).context("further in"));
    assert_eq!(
        classify(&wrapped),
        class,
        "{fault}, {method}, wrapped: {wrapped:?}"
    );
}

async fn send(
    client: ClientBuilder,
    method: Method,
    url: impl AsRef<str>,
) -> Result<reqwest::Response, Error> {
    exchange(client, method, url, "").await
}

async fn exchange(
    client: ClientBuilder,
    method: Method,
    url: impl AsRef<str>,
    body: impl Into<reqwest::Body>,
) -> Result<reqwest::Response, Error> {
    let client = reqwest_middleware::ClientBuilder::new(client.build().unwrap()).build();
    client.request(method, url.as_ref()).body(body).send().await
}

/// What a fault is where nothing reads a request.
async fn lost(client: ClientBuilder, method: Method, url: impl AsRef<str>) -> Failed {
    Failed::new(send(client, method, url).await.unwrap_err(), 0)
}

/// A client that goes through a proxy.
fn via(proxy: String) -> ClientBuilder {
    support::tls::trusting().proxy(reqwest::Proxy::all(proxy).unwrap())
}

/// What is asked for behind a proxy, which knows where that is.
const TARGET: &str = "https://target.test/";

const CREDENTIALS: StatusCode = StatusCode::PROXY_AUTHENTICATION_REQUIRED;

faults! {
    "connection refused": Some(Connect) => connect {
        connection_refused 5;
        connection_reset_while_connecting 2;
        proxy_refuses_connections 3;
        socks_proxy_refuses_connections 3;
    }
    "name not resolved": Some(Dns) => connect {
        name_not_resolved 5;
        proxy_not_resolved 3;
        name_not_resolved_for_a_socks_proxy 3;
    }
    "no connection in time": Some(ConnectTimeout) => timeout {
        connecting_takes_too_long 2;
        tls_handshake_takes_too_long 2;
        proxy_takes_too_long 2;
        socks_proxy_takes_too_long 2;
        resolver_says_nothing 2;
        resolver_times_out 2;
        resolver_is_timed_out_by_tokio 2;
        resolver_hickory_times_out 2;
        resolver_times_out_for_a_proxy 2;
    }
    "no head in time": Some(Timeout) => timeout {
        total_timeout_while_connecting 2;
        total_timeout_in_the_tls_handshake 2;
        total_timeout_before_the_head 2;
        read_timeout_before_the_head 2;
        total_timeout_in_a_flood_of_interim_answers 2;
    }
    "connection gone before a byte was written": Some(NotProcessed) => http1 {
        connection_closed_at_once 10;
        connection_reset_at_once 10;
        answer_to_nothing 10;
    }
    "closed before a whole head": Some(Closed) => http1 {
        closed_before_the_request_was_read 30;
        closed_after_the_request_was_read 30;
        closed_in_the_head 30;
        closed_after_an_interim_answer 30;
        closed_over_tls 10;
        closed_behind_a_proxy 10;
    }
    "reset before a whole head": Some(Closed) => http1 {
        reset_before_the_request_was_read 30;
        reset_after_the_request_was_read 30;
        reset_in_the_head 30;
    }
    "runtime of the connection gone": Some(Closed) => http1 {
        runtime_of_the_connection_dropped 5;
    }
    "upload cut off": Some(Closed) => http1 {
        upload_closed 10;
        upload_reset 10;
    }
    "no HTTP, or a head without end": Some(Protocol) => http1 {
        garbage_instead_of_a_head 5;
        head_without_end 2;
    }
    "certificate that does not verify": Some(Certificate), without "rustls": Some(Tls) => tls {
        certificate_untrusted 2;
        certificate_expired 2;
        certificate_not_yet_valid 2;
        certificate_for_another_name 2;
        certificate_untrusted_behind_a_proxy 2;
    }
    "client certificate demanded or refused": Some(Certificate), without "rustls": Some(Tls) => tls {
        client_certificate_demanded 5;
        client_certificate_refused 5;
    }
    "the same after the handshake (TLS 1.3)":
    Some(Certificate), without "rustls": Some(Closed) => tls {
        client_certificate_demanded_after_the_handshake 10;
        client_certificate_refused_after_the_handshake 10;
        client_certificate_demanded_over_http2 5;
        client_certificate_refused_over_http2 5;
    }
    "no TLS, or none in common":
    Some(Protocol), without "rustls": Some(Tls) => tls {
        alert_in_the_tls_handshake 5;
        plain_http_where_tls_was_asked_for 5;
        no_tls_version_in_common 5;
    }
    "TLS handshake broken off": Some(Tls) => tls {
        closed_in_the_tls_handshake 10;
        reset_in_the_tls_handshake 10;
        closed_in_the_tls_handshake_behind_a_proxy 5;
        reset_in_the_tls_handshake_behind_a_proxy 5;
        closed_in_the_tls_handshake_behind_a_socks_proxy 5;
        internal_error_in_the_tls_handshake 5;
        user_canceled_in_the_tls_handshake 5;
        bad_record_mac_in_the_tls_handshake 5;
    }
    "TLS broken after the handshake": Some(Closed) => tls_noise {
        bit_flipped_on_the_way_to_the_server 10;
        bit_flipped_on_the_way_to_the_server_under_tls12 10;
        bit_flipped_on_the_way_back 10;
        bit_flipped_on_the_way_back_under_tls12 10;
        bit_flipped_on_the_way_back_over_http2 10;
        plain_text_on_the_way_to_the_server 10;
        plain_text_on_the_way_to_the_server_under_tls12 10;
        plain_text_on_the_way_back 10;
        plain_text_on_the_way_back_under_tls12 10;
        plain_text_on_the_way_back_over_http2 10;
        bad_record_mac_after_the_tls_handshake 10;
    }
    "proxy demands credentials": Some(Proxy { status: Some(CREDENTIALS) }) => proxy {
        proxy_demands_credentials 3;
    }
    "proxy refuses the tunnel, or is none": Some(Proxy { status: None }) => proxy {
        proxy_forbids 3;
        proxy_finds_no_way 3;
        proxy_closes 10;
        proxy_resets 10;
        proxy_answers_garbage 3;
        proxy_answers_without_end 3;
        socks_proxy_refuses 3;
        socks_proxy_demands_credentials 3;
        socks_proxy_closes 10;
        socks_proxy_resets 10;
        socks_proxy_answers_garbage 3;
    }
    "HTTP/2 stream refused": Some(NotProcessed), without "http2": Some(Closed) => http2 {
        stream_refused 5;
        stream_refused_unread 5;
    }
    "HTTP/2 GOAWAY": Some(Closed) => http2 {
        goaway_that_leaves_the_request_out 10;
        goaway_with_an_error_that_leaves_the_request_out 10;
        goaway_that_leaves_the_request_out_unread 10;
        goaway_that_covers_the_request 30;
        goaway_with_an_error_that_covers_the_request 30;
        goaway_that_covers_everything 30;
    }
    "HTTP/2 stream reset": Some(Closed) => http2 {
        stream_reset_with_an_error 5;
        stream_reset_as_canceled 5;
        stream_reset_for_calm 5;
    }
    "HTTP/2 refused: HTTP_1_1_REQUIRED":
    Some(Protocol), without "http2": Some(Closed) => http2 {
        stream_reset_for_http_1_1 5;
        goaway_for_http_1_1 5;
    }
    "HTTP/2 connection closed or reset": Some(Closed) => http2 {
        http2_connection_closed 30;
        http2_connection_reset 30;
    }
    "HTTP/2 connection gone before a stream": Some(Closed) => http2 {
        connection_closed_while_the_request_waits_for_a_stream 5;
        connection_reset_while_the_request_waits_for_a_stream 5;
    }
    "HTTP/2 ping not answered": Some(Timeout) => http2 {
        pings_unanswered 2;
    }
    "no HTTP/2 where it was spoken": Some(Protocol), without "http2": Some(Closed) => http2 {
        frame_that_is_not_valid 5;
        http2_spoken_to_an_http_1_1_server 10;
    }
    "request's body stream failed": None => caller {
        body_stream_failed 5;
        body_stream_failed_to_connect 5;
        body_stream_ended_early 5;
        body_stream_panicked 5;
    }
    "the same over HTTP/2":
    None, without "http2": Some(Closed) => caller {
        body_stream_failed_over_http2 5;
    }
    "URL or version not to be had": None => caller {
        url_that_is_none 2;
        url_of_another_scheme 2;
        https_from_a_client_without_tls 2;
        http2_asked_of_an_http_1_1_connection 2;
    }
    "redirect that is not followed": None => caller {
        redirect_loop 2;
        redirect_to_another_scheme 2;
    }
    "failure after the head": None => caller {
        status_turned_into_an_error 2;
        body_of_the_answer_cut_off 5;
        body_of_the_answer_timed_out 2;
        body_of_the_answer_corrupt 2;
    }
}

#[test]
fn the_documentation_shows_these_tables() {
    let documented: Vec<[String; 3]> = include_str!("../../../src/middleware/classify/mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("/// | ")?.strip_suffix(" |"))
        .map(|line| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [fault, second, third] = cells[..] else {
                panic!("{line}")
            };
            [fault, second, third].map(str::to_owned)
        })
        .collect();
    let head = |second: &str, third: &str| {
        [
            ["fault", second, third].map(str::to_owned),
            ["---"; 3].map(str::to_owned),
        ]
    };
    let classes = head("class", "decided by")
        .into_iter()
        .chain(TABLE.iter().map(Row::cells));
    let without = head("feature", "class without it")
        .into_iter()
        .chain(TABLE.iter().filter_map(Row::cells_without));
    assert_eq!(documented, classes.chain(without).collect::<Vec<_>>());
}
