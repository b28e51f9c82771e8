//! The wait that a server asks for, and what is done about it.

use std::time::{Duration, Instant, SystemTime};

use reqwest::Response;
use reqwest_retry_rules::{
    ResponseExt, RetryAfter, RetryAfterCap, RetryPolicy, RetryRule, StopReason, WaitFormat,
    WaitHeader, WaitSource,
};

use crate::support::chain::{Scripted, at_once, retrying, retrying_around};
use crate::support::h1::H1;
use crate::support::script::Answer;

/// 1994-11-15 08:12:31, as the clock of the client has it.
const CLIENTS_CLOCK: u64 = 784_887_151;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[track_caller]
fn waits(response: &Response) -> Vec<(Option<Duration>, Option<WaitSource>)> {
    let records = response.retry_report().unwrap().records();
    records
        .iter()
        .map(|record| (record.wait(), record.wait_source()))
        .collect()
}

fn waited(millis: u64) -> Vec<(Option<Duration>, Option<WaitSource>)> {
    vec![(Some(ms(millis)), Some(WaitSource::Server)), (None, None)]
}

#[tokio::test]
async fn a_second_that_is_asked_for_is_waited_for() {
    let later = Answer::new(503).header("retry-after", "1").body("later");
    let server = H1::start([later, Answer::new(200)]).await;
    let begun = Instant::now();
    let response = retrying(at_once())
        .get(server.url("/"))
        .send()
        .await
        .unwrap();
    assert!(begun.elapsed() >= ms(1000));
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));
    assert_eq!(waits(&response), waited(1000));
}

#[tokio::test]
async fn milliseconds_that_are_asked_for_are_waited_for() {
    let later = Answer::new(429)
        .header("retry-after", "3600")
        .header("retry-after-ms", "35");
    let server = H1::start([later, Answer::new(200)]).await;
    let response = retrying(at_once())
        .get(server.url("/"))
        .send()
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));
    assert_eq!(waits(&response), waited(35));
}

#[tokio::test]
async fn an_hour_that_is_asked_for_ends_the_send_with_the_answer_in_hand() {
    let body = "come back in an hour ".repeat(10_000);
    let later = Answer::new(503)
        .header("retry-after", "3600")
        .body(body.clone());
    let server = H1::start([later, Answer::new(200)]).await;
    let response = retrying(at_once())
        .get(server.url("/"))
        .send()
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    let report = response.retry_report().unwrap();
    let hour = Duration::from_secs(3600);
    assert_eq!(
        report.stop_reason(),
        Some(StopReason::RetryAfterTooLong(hour))
    );
    assert_eq!(report.retry_after(), Some(hour));
    assert_eq!(report.records()[0].wait(), None);
    assert!(report.retries_exhausted());
    assert_eq!(response.retry_after(None), Some(hour));
    assert_eq!(response.text().await.unwrap(), body);
}

#[tokio::test]
async fn a_date_is_measured_by_the_servers_own_clock() {
    // Ten minutes behind the client; by its clock the date has long passed.
    let servers = SystemTime::now() - Duration::from_secs(600);
    let date = |seconds| httpdate::fmt_http_date(servers + Duration::from_secs(seconds));
    let later = Answer::new(503)
        .header("date", &date(0))
        .header("retry-after", &date(1));
    let server = H1::start([later, Answer::new(200)]).await;
    let begun = Instant::now();
    let response = retrying(at_once())
        .get(server.url("/"))
        .send()
        .await
        .unwrap();
    assert!(begun.elapsed() >= ms(1000));
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));
    assert_eq!(waits(&response), waited(1000));
}

/// One refused response and the wait that it leads to, or what the send stops with.
struct Row {
    name: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    asks: Result<(u64, WaitSource), StopReason>,
}

#[tokio::test(start_paused = true)]
async fn each_way_to_ask_is_waited_for_to_the_millisecond() {
    use StopReason::RetryAfterTooLong;
    use WaitSource::{Backoff, Server};

    let row = |name, headers: &[_], asks| Row {
        name,
        headers: headers.to_vec(),
        asks,
    };
    let too_long = |seconds| Err(RetryAfterTooLong(Duration::from_secs(seconds)));
    for row in [
        row("nothing asked", &[], Ok((50, Backoff))),
        row("seconds", &[("retry-after", "2")], Ok((2000, Server))),
        row(
            "a part of a second",
            &[("retry-after", "1.25")],
            Ok((1250, Server)),
        ),
        row("none", &[("retry-after", "0")], Ok((50, Backoff))),
        row(
            "as long as is accepted",
            &[("retry-after", "60")],
            Ok((60_000, Server)),
        ),
        row("longer", &[("retry-after", "61")], too_long(61)),
        row(
            "without end",
            &[("retry-after", "99999999999999999999")],
            Err(RetryAfterTooLong(ms(u64::MAX))),
        ),
        row("in words", &[("retry-after", "soon")], Ok((50, Backoff))),
        row(
            "less than none",
            &[("retry-after", "-1")],
            Ok((50, Backoff)),
        ),
        row(
            "milliseconds",
            &[("retry-after-ms", "250")],
            Ok((250, Server)),
        ),
        row(
            "milliseconds first",
            &[("retry-after", "2"), ("retry-after-ms", "250")],
            Ok((250, Server)),
        ),
        row(
            "milliseconds in words",
            &[("retry-after", "2"), ("retry-after-ms", "soon")],
            Ok((2000, Server)),
        ),
        row(
            "twice",
            &[("retry-after", "3"), ("retry-after", "2")],
            Ok((3000, Server)),
        ),
        row(
            "a date by the client's clock",
            &[("retry-after", "Tue, 15 Nov 1994 08:12:35 GMT")],
            Ok((4000, Server)),
        ),
        row(
            "a date by the server's clock, ahead",
            &[
                ("date", "Tue, 15 Nov 1994 08:22:31 GMT"),
                ("retry-after", "Tue, 15 Nov 1994 08:22:34 GMT"),
            ],
            Ok((3000, Server)),
        ),
        row(
            "a date by the server's clock, behind",
            &[
                ("date", "Tue, 15 Nov 1994 08:02:31 GMT"),
                ("retry-after", "Tue, 15 Nov 1994 08:02:34 GMT"),
            ],
            Ok((3000, Server)),
        ),
        row(
            "a date by the server's clock, an hour in a cache",
            &[
                ("date", "Tue, 15 Nov 1994 07:22:31 GMT"),
                ("age", "3600"),
                ("retry-after", "Tue, 15 Nov 1994 08:22:34 GMT"),
            ],
            Ok((3000, Server)),
        ),
        row(
            "a date by the server's clock, the age unreadable",
            &[
                ("date", "Tue, 15 Nov 1994 08:22:31 GMT"),
                ("age", "an hour"),
                ("retry-after", "Tue, 15 Nov 1994 08:22:34 GMT"),
            ],
            Ok((3000, Server)),
        ),
        row(
            "a date by the client's clock, the server's unreadable",
            &[
                ("date", "yesterday"),
                ("retry-after", "Tue, 15 Nov 1994 08:12:35 GMT"),
            ],
            Ok((4000, Server)),
        ),
        row(
            "a date that has passed",
            &[("retry-after", "Tue, 15 Nov 1994 08:12:30 GMT")],
            Ok((50, Backoff)),
        ),
        row(
            "a date too far off",
            &[("retry-after", "Tue, 15 Nov 1994 09:12:31 GMT")],
            too_long(3600),
        ),
        row(
            "seconds mind no clock",
            &[
                ("date", "Tue, 15 Nov 1994 08:22:31 GMT"),
                ("retry-after", "2"),
            ],
            Ok((2000, Server)),
        ),
    ] {
        let refused = row
            .headers
            .iter()
            .fold(Answer::new(503), |answer, (name, value)| {
                answer.header(name, value)
            });
        let transport = Scripted::new([refused, Answer::new(200)]);
        let policy = RetryPolicy::from(RetryRule::transient())
            .jitter_source(|| 0.5)
            .wall_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(CLIENTS_CLOCK));
        let client = retrying_around(policy, transport.clone());
        let response = client.get("http://localhost/").send().await.unwrap();
        let report = response.retry_report().unwrap();
        match row.asks {
            Ok((wait, source)) => {
                let record = &report.records()[0];
                let told = (record.wait(), record.wait_source());
                assert_eq!(told, (Some(ms(wait)), Some(source)), "{}", row.name);
                assert_eq!(transport.pauses(), [ms(wait)], "{}", row.name);
                assert_eq!(report.stop_reason(), None, "{}", row.name);
            }
            Err(reason) => {
                assert_eq!(report.stop_reason(), Some(reason), "{}", row.name);
                assert_eq!(transport.count(), 1, "{}", row.name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_of_the_services_own_is_waited_for() {
    let rule = RetryRule {
        retry_after: RetryAfter {
            headers: vec![WaitHeader {
                name: "x-ratelimit-reset".parse().unwrap(),
                format: WaitFormat::UnixSeconds,
                statuses: vec![],
            }],
            ..at_once().retry_after
        },
        ..at_once()
    };
    for (date, wait) in [(None, 5), (Some("Tue, 15 Nov 1994 08:12:33 GMT"), 3)] {
        let reset = (CLIENTS_CLOCK + 5).to_string();
        let mut refused = Answer::new(429).header("x-ratelimit-reset", &reset);
        if let Some(date) = date {
            refused = refused.header("date", date);
        }
        let transport = Scripted::new([refused, Answer::new(200)]);
        let policy = RetryPolicy::from(rule.clone())
            .wall_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(CLIENTS_CLOCK));
        let client = retrying_around(policy, transport.clone());
        let response = client.get("http://localhost/").send().await.unwrap();
        assert_eq!(waits(&response), waited(wait * 1000));
        assert_eq!(transport.pauses(), [Duration::from_secs(wait)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_backs_off_above_its_cap_does_not_stop() {
    let cap = |cap| RetryRule {
        retry_after: RetryAfter {
            cap,
            ..at_once().retry_after
        },
        ..at_once()
    };
    let minute = Duration::from_secs(60);
    for (rule, pauses) in [
        (cap(RetryAfterCap::StopAbove(minute)), vec![]),
        (
            cap(RetryAfterCap::BackoffAbove(minute)),
            vec![Duration::ZERO],
        ),
        (cap(RetryAfterCap::NoCap), vec![Duration::from_secs(3600)]),
    ] {
        let later = Answer::new(503).header("retry-after", "3600");
        let transport = Scripted::new([later, Answer::new(200)]);
        let client = retrying_around(rule, transport.clone());
        client.get("http://localhost/").send().await.unwrap();
        assert_eq!(transport.pauses(), pauses);
    }
}

#[tokio::test(start_paused = true)]
async fn every_wait_is_asked_for_anew() {
    let asks = |seconds| Answer::new(503).header("retry-after", seconds);
    let transport = Scripted::new([asks("3"), Answer::new(503), asks("1"), Answer::new(200)]);
    let policy = RetryPolicy::from(RetryRule::transient()).jitter_source(|| 0.5);
    let client = retrying_around(policy, transport.clone());
    let response = client.get("http://localhost/").send().await.unwrap();
    assert_eq!(transport.pauses(), [ms(3000), ms(100), ms(1000)]);
    let report = response.retry_report().unwrap();
    let asked: Vec<_> = report
        .records()
        .iter()
        .map(|record| record.retry_after())
        .collect();
    assert_eq!(asked, [Some(ms(3000)), None, Some(ms(1000)), None]);
    assert_eq!(report.retry_after(), None);
}
