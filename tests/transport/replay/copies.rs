//! A request that is sent again equals the one that was sent first.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Version};
use proptest::prelude::*;
use reqwest::{Body, Method, Request, Response, Url};
use reqwest_middleware::{Middleware, Next, Result};
use reqwest_retry_rules::{
    ReplaySafe, RetryMiddleware, RetryPolicy, RetryRule, StatusMatch, StatusRule,
};

use crate::support::sends::at_once;

/// Everything that reqwest lets one see of a request.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    method: Method,
    url: Url,
    headers: Vec<(HeaderName, HeaderValue, bool)>,
    version: Version,
    timeout: Option<Duration>,
    body: Option<Vec<u8>>,
    debug: String,
}

impl Seen {
    fn of(request: &Request) -> Seen {
        Seen {
            method: request.method().clone(),
            url: request.url().clone(),
            headers: in_order(request.headers()),
            version: request.version(),
            timeout: request.timeout().copied(),
            body: request.body().map(|body| {
                let bytes = body.as_bytes().expect("a body in memory stays one");
                bytes.to_vec()
            }),
            debug: format!("{request:?}"),
        }
    }
}

fn in_order(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue, bool)> {
    headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone(), value.is_sensitive()))
        .collect()
}

/// The end of the chain: notes each request and refuses it. What it was handed it may spoil.
#[derive(Clone, Default)]
struct Refusing(Arc<Mutex<Vec<Seen>>>);

#[async_trait::async_trait]
impl Middleware for Refusing {
    async fn handle(
        &self,
        mut request: Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> Result<Response> {
        self.0.lock().unwrap().push(Seen::of(&request));
        request.headers_mut().clear();
        *request.body_mut() = Some(Body::from("spoilt"));
        Ok(refused())
    }
}

fn refused() -> Response {
    let answer = http::Response::builder().status(503).body("");
    Response::from(answer.unwrap())
}

/// What each attempt of a request looked like.
fn attempts(request: Request, policy: impl Into<RetryPolicy>) -> Vec<Seen> {
    static CLIENT: LazyLock<reqwest::Client> =
        LazyLock::new(|| crate::support::client().build().unwrap());
    let refusing = Refusing::default();
    let client = reqwest_middleware::ClientBuilder::new(CLIENT.clone())
        .with(RetryMiddleware::new(policy))
        .with(refusing.clone())
        .build();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut extensions = Extensions::new();
    extensions.insert(ReplaySafe(true));
    let sent = client.execute_with_extensions(request, &mut extensions);
    runtime.block_on(sent).unwrap();
    refusing.0.lock().unwrap().clone()
}

fn methods() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::GET),
        Just(Method::HEAD),
        Just(Method::POST),
        Just(Method::PATCH),
        "[A-Z][A-Za-z0-9!#$%&'*+.^_`|~-]{0,12}"
            .prop_filter_map("no method", |name| Method::from_bytes(name.as_bytes()).ok()),
    ]
}

/// URLs that were parsed, and some parts of them set afterwards: those of a retry are read from text.
fn urls() -> impl Strategy<Value = Url> {
    let parsed = (
        "https?",
        "[a-z]{1,8}(:[a-z0-9]{1,8})?@|",
        "[a-z][a-z0-9-]{0,10}[a-z]|127\\.0\\.0\\.1|\\[::1\\]",
        "(:[1-9][0-9]{0,3})?",
        "(/[ -~é☃]{0,12}){0,3}",
        "(\\?[ -~ü]{0,12})?",
        "(#[a-z]{0,5})?",
    )
        .prop_filter_map(
            "no URL",
            |(scheme, user, host, port, path, query, fragment)| {
                Url::parse(&format!(
                    "{scheme}://{user}{host}{port}{path}{query}{fragment}"
                ))
                .ok()
            },
        );
    let part = (0..10_u8, "[ -~é☃\\PC]{0,12}", 0..1000_u16);
    (parsed, prop::collection::vec(part, 0..4)).prop_map(|(mut url, parts)| {
        for (part, text, port) in parts {
            set_part(&mut url, part, &text, port);
        }
        url
    })
}

/// Sets a part of `url`; what it cannot be is left as it was.
fn set_part(url: &mut Url, part: u8, text: &str, port: u16) {
    match part {
        0 => url
            .set_scheme(text.get(..2).map_or("http", |_| "https"))
            .unwrap(),
        1 => drop(url.set_username(text)),
        2 => drop(url.set_password(Some(text))),
        3 => drop(url.set_host(Some(text))),
        4 => url.set_port(Some(port)).unwrap(),
        5 => url.set_path(text),
        6 => drop(url.path_segments_mut().unwrap().push(text)),
        7 => url.set_query(Some(text)),
        8 => drop(url.query_pairs_mut().append_pair(text, text)),
        _ => url.set_fragment(Some(text)),
    }
}

/// Few names, so that many occur twice.
fn headers() -> impl Strategy<Value = HeaderMap> {
    let name = prop_oneof![
        Just("accept"),
        Just("authorization"),
        Just("content-length"),
        Just("content-type"),
        Just("x-a"),
        Just("x-b"),
    ]
    .prop_map(HeaderName::from_static);
    let value = prop::collection::vec(prop_oneof![0x20..0x7f_u8, 0x80..=0xff_u8], 0..20);
    let header = (name, value, any::<bool>()).prop_map(|(name, value, sensitive)| {
        let mut value = HeaderValue::from_bytes(&value).unwrap();
        value.set_sensitive(sensitive);
        (name, value)
    });
    prop::collection::vec(header, 0..12).prop_map(|headers| {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        map
    })
}

fn requests() -> impl Strategy<Value = Request> {
    let versions = prop_oneof![
        Just(Version::HTTP_09),
        Just(Version::HTTP_10),
        Just(Version::HTTP_11),
        Just(Version::HTTP_2),
        Just(Version::HTTP_3),
    ];
    let timeouts = prop::option::of((0..u64::MAX).prop_map(Duration::from_nanos));
    let bodies = prop::option::of(prop::collection::vec(any::<u8>(), 0..200));
    (methods(), urls(), headers(), versions, timeouts, bodies).prop_map(
        |(method, url, headers, version, timeout, body)| {
            let mut request = Request::new(method, url);
            *request.headers_mut() = headers;
            *request.version_mut() = version;
            if timeout.is_some() {
                *request.timeout_mut() = timeout;
            }
            *request.body_mut() = body.map(Body::from);
            request
        },
    )
}

/// Refuses nothing but what [`Refusing`] says.
fn thrice() -> RetryRule {
    RetryRule {
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: reqwest_retry_rules::Methods::Any,
            backoff: None,
        }],
        ..at_once(2)
    }
}

/// `http` lets a quotation mark pass in a name that is static, and nowhere else.
#[test]
fn a_name_with_a_quotation_mark_is_on_every_attempt() {
    let mut request = Request::new(Method::GET, "http://a.test/".parse().unwrap());
    let name = HeaderName::from_static("a\"b");
    request
        .headers_mut()
        .insert(name, HeaderValue::from_static("c"));
    let original = Seen::of(&request);
    assert_eq!(attempts(request, thrice()), vec![original; 3]);
}

/// Its text is no URL again for every version of the `url` crate. (Older ones take it for one.)
#[test]
fn a_host_that_cannot_be_read_back_is_sent_again() {
    let host: String = ('一'..='龥').step_by(13).take(900).collect();
    let url: Url = format!("http://{host}/").parse().unwrap();
    if Url::parse(url.as_str()).is_ok() {
        return;
    }
    let request = Request::new(Method::GET, url);
    let original = Seen::of(&request);
    assert_eq!(attempts(request, thrice()), vec![original; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_attempt_of_a_request_is_the_same(request in requests()) {
        let original = Seen::of(&request);
        let seen = attempts(request, thrice());
        prop_assert_eq!(seen, vec![original; 3]);
    }

    #[test]
    fn a_timeout_of_the_policy_is_on_every_attempt_and_nothing_else_changes(
        request in requests(),
        limit in (1..u64::MAX).prop_map(Duration::from_nanos),
    ) {
        let mut original = request.try_clone().unwrap();
        let timeout = original.timeout().map_or(limit, |own| limit.min(*own));
        *original.timeout_mut() = Some(timeout);
        let original = Seen::of(&original);
        let seen = attempts(request, RetryPolicy::from(thrice()).attempt_timeout(limit));
        prop_assert_eq!(seen, vec![original; 3]);
    }
}

#[test]
fn the_bytes_of_a_body_are_not_copied() {
    let body = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    let addresses = Arc::new(Mutex::new(Vec::new()));

    struct Where(Arc<Mutex<Vec<usize>>>);

    #[async_trait::async_trait]
    impl Middleware for Where {
        async fn handle(
            &self,
            request: Request,
            _: &mut Extensions,
            _: Next<'_>,
        ) -> Result<Response> {
            let bytes = request.body().unwrap().as_bytes().unwrap();
            self.0.lock().unwrap().push(bytes.as_ptr() as usize);
            Ok(refused())
        }
    }

    let client = crate::support::client().build().unwrap();
    let client = reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(at_once(3)))
        .with(Where(addresses.clone()))
        .build();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let request = client.put("http://target.test/").body(body.clone());
    runtime.block_on(request.send()).unwrap();
    assert_eq!(*addresses.lock().unwrap(), [body.as_ptr() as usize; 4]);
}
