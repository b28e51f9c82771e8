//! Wires that spoil what goes over them: TLS notices, and says nothing of the server by that.

use reqwest::Method;
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::StopReason;
use reqwest_retry_rules::TransportError::Closed;

use super::{policy, soon};
use crate::support::h1::H1;
use crate::support::noise::{self, Noise, Spoilt};
use crate::support::script::Act;
use crate::support::sends::{Went, retrying, send};
use crate::support::tls::{Cert, Tls, trusting};

/// What becomes of a request whose answer is spoilt every time, and how often the server saw it.
async fn spoilt(noise: Noise, method: Method) -> (Went, usize) {
    let server = H1::start_tls(Tls::new(Cert::Good).acceptor(), Act::ok("never")).await;
    let answer = Spoilt::Answer((*server).clone());
    let between = noise::before(server.addr, noise, answer).await;
    let client = retrying(trusting(), policy());
    let request = client.request(method, between.url("https", "/"));
    let (outcome, went) = soon("a spoilt answer", send(request)).await;
    outcome.unwrap_err();
    (went, server.count())
}

#[tokio::test]
async fn a_get_whose_answer_is_spoilt_is_sent_again() {
    for noise in [Noise::Flip, Noise::PlainText] {
        let (went, sent) = spoilt(noise, Method::GET).await;
        let closed = Went::stopped([Failure(Closed); 3], StopReason::Exhausted);
        assert_eq!(went, closed, "{noise:?}");
        assert_eq!(sent, 3, "{noise:?}");
    }
}

#[tokio::test]
async fn a_post_whose_answer_is_spoilt_is_sent_once() {
    for noise in [Noise::Flip, Noise::PlainText] {
        let (went, sent) = spoilt(noise, Method::POST).await;
        let closed = Went::stopped([Failure(Closed)], StopReason::MethodNotAllowed);
        assert_eq!(went, closed, "{noise:?}");
        assert_eq!(sent, 1, "{noise:?}");
    }
}
