//! What a rule decides, told a second time: as plainly as it can be told, however slow that is.
//!
//! Nothing here is shared with the crate but its types. Numbers are wider than they need be, a power
//! is a loop, and a date is whatever would be written like it. `decide` reads as its documentation.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, Backoff, Decision, Jitter, Methods, RetryAfterCap, RetryAfterRole,
    RetryAfterSource, RetryRule, StatusMatch, StatusRule, StopReason, TransportError, WaitFormat,
    WaitHeader,
};

/// What an outcome is made of, and an attempt's facts, owned.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Where there is none, a response came.
    pub failure: Option<TransportError>,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub method: Method,
    pub attempt: u32,
    pub random: f64,
    pub now: Option<SystemTime>,
    pub elapsed: Duration,
    pub remaining: Option<Duration>,
    pub server_delay: Option<Duration>,
    pub condition: Option<Methods>,
    pub idempotent: bool,
    pub replayable: bool,
    pub vetoed: bool,
    pub replaced: bool,
    pub paused: Option<Duration>,
}

impl Facts {
    pub fn outcome(&self) -> AttemptOutcome<'_> {
        match self.failure {
            Some(failure) => AttemptOutcome::Failure(failure),
            None => AttemptOutcome::Response {
                status: self.status,
                headers: &self.headers,
            },
        }
    }

    pub fn attempt(&self) -> Attempt<'_> {
        Attempt {
            method: &self.method,
            attempt: self.attempt,
            random: self.random,
            now: self.now,
            elapsed: self.elapsed,
            remaining: self.remaining,
            server_delay: self.server_delay,
            condition: self.condition.as_ref(),
            idempotent: self.idempotent,
            replayable: self.replayable,
            vetoed: self.vetoed,
            replaced: self.replaced,
            paused: self.paused,
        }
    }
}

pub fn decide(rule: &RetryRule, outcome: &AttemptOutcome<'_>, facts: &Attempt<'_>) -> Decision {
    if facts.attempt >= rule.max_retries {
        return Decision::Stop(StopReason::Exhausted);
    }
    if !facts.replayable {
        return Decision::Stop(StopReason::NotReplayable);
    }
    if facts.vetoed {
        return Decision::Stop(StopReason::NotRetryable);
    }
    let overriding = server_says(rule.override_header.as_ref(), outcome);
    let vetoing = server_says(rule.veto_header.as_ref(), outcome);
    if overriding.as_deref() == Some("false") || vetoing.as_deref() == Some("false") {
        return Decision::Stop(StopReason::ServerSaidNo);
    }
    if overriding.as_deref() != Some("true") {
        let retried = retried_for(rule, outcome, facts);
        if retried.iter().all(|methods| *methods == Methods::Never) {
            return Decision::Stop(StopReason::NotRetryable);
        }
        if !retried.iter().any(|methods| is_among(methods, facts)) {
            return Decision::Stop(StopReason::MethodNotAllowed);
        }
    }
    if facts.replaced && !facts.idempotent && !is_among(&rule.sent_failures, facts) {
        return Decision::Stop(StopReason::MethodNotAllowed);
    }

    let mut backoff = &rule.backoff;
    if let AttemptOutcome::Response { status, .. } = outcome {
        if let Some(own) = row(rule, *status).and_then(|row| row.backoff.as_ref()) {
            backoff = own;
        }
    }
    let backoff = ms(delay(backoff, facts.attempt, facts.random));
    let settings = &rule.retry_after;
    let wait = match asked(rule, outcome, facts).map(ms) {
        None => backoff,
        Some(0) if settings.zero_means_backoff => backoff,
        Some(asked) => match settings.cap {
            RetryAfterCap::StopAbove(cap) if asked > ms(cap) => {
                return Decision::Stop(StopReason::RetryAfterTooLong(duration(asked)));
            }
            RetryAfterCap::BackoffAbove(cap) if asked > ms(cap) => backoff,
            cap => {
                let asked = match cap {
                    RetryAfterCap::ClampTo(cap) => asked.min(ms(cap)),
                    _ => asked,
                };
                let share = (sample(facts.random) * f64::from(settings.spread)).trunc() as u128;
                let spread = asked + asked * share / 1000;
                match settings.role {
                    RetryAfterRole::Replace => spread,
                    RetryAfterRole::Floor => spread.max(backoff),
                }
            }
        },
    };
    let wait = duration(wait.max(facts.paused.map_or(0, ms)));

    let elapsed = ms(facts.elapsed);
    if let Some(hard) = rule.limits.hard_elapsed {
        if elapsed + ms(wait) >= ms(hard) {
            return Decision::Stop(StopReason::HardLimit(wait));
        }
    }
    if let Some(soft) = rule.limits.soft_elapsed {
        if elapsed > ms(soft) && facts.attempt >= rule.limits.min_retries {
            return Decision::Stop(StopReason::SoftLimit);
        }
    }
    if let Some(remaining) = facts.remaining {
        if ms(wait) >= ms(remaining) {
            return Decision::Stop(StopReason::Budget(wait));
        }
    }
    Decision::Wait(wait)
}

/// Whether there is no fault in a rule.
pub fn is_valid(rule: &RetryRule) -> bool {
    let a_status = |code: u16| (100..=999).contains(&code);
    let statuses = rule.statuses.iter().flat_map(|each| &each.statuses);
    let headers = rule.retry_after.headers.iter();
    let statuses = statuses.chain(headers.flat_map(|each| &each.statuses));
    let statuses_are = statuses.into_iter().all(|each| match *each {
        StatusMatch::Code(code) => a_status(code),
        StatusMatch::Range(first, last) => a_status(first) && a_status(last) && first <= last,
    });
    let each = rule.statuses.iter().map(|each| &each.methods);
    let methods_are = each
        .chain([&rule.sent_failures])
        .all(|methods| match methods {
            Methods::Listed(listed) => listed.iter().all(|each| is_meant(each.as_str())),
            _ => true,
        });
    let own = rule.statuses.iter().filter_map(|row| row.backoff.as_ref());
    let backoffs_are = own
        .chain([&rule.backoff])
        .all(|backoff| is_valid_backoff(backoff, rule.max_retries > 0));
    let soft = rule.limits.soft_elapsed.map_or(0, ms);
    let limits_are = match rule.limits.hard_elapsed.map(ms) {
        None => true,
        Some(hard) => hard > 0 && hard >= soft,
    };
    statuses_are && methods_are && backoffs_are && limits_are
}

fn is_valid_backoff(backoff: &Backoff, retries: bool) -> bool {
    let (base, max) = (ms(backoff.base), ms(backoff.max));
    let jitter_is = match backoff.jitter {
        Jitter::Proportional { lo, hi } => lo <= hi && hi >= 10,
        _ => true,
    };
    let never_waits = base == 0 && max > 0;
    base <= max && !(retries && never_waits) && backoff.growth >= 1000 && jitter_is
}

/// Whether a name in a list can be meant as the method that it is.
fn is_meant(name: &str) -> bool {
    match name.to_ascii_uppercase().as_str() {
        "NEVER" | "IDEMPOTENT" | "ANY" => false,
        standard @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "CONNECT" | "OPTIONS"
        | "TRACE" | "PATCH") => name == standard,
        _ => true,
    }
}

/// What stands in the header of a response that is an error, in lower case and without what is
/// around it.
fn server_says(name: Option<&HeaderName>, outcome: &AttemptOutcome<'_>) -> Option<String> {
    match (outcome, name) {
        (AttemptOutcome::Response { status, headers }, Some(name)) if status.as_u16() >= 400 => {
            let first = headers.get_all(name).iter().next()?;
            let said = text(first)?.to_ascii_lowercase();
            Some(said.trim_matches([' ', '\t']).to_owned())
        }
        _ => None,
    }
}

/// The methods for which the outcome is retried; it is enough that one of them has the method.
fn retried_for(
    rule: &RetryRule,
    outcome: &AttemptOutcome<'_>,
    facts: &Attempt<'_>,
) -> Vec<Methods> {
    use TransportError::*;

    let failure = match outcome {
        AttemptOutcome::Response { status, .. } => {
            let condition = facts.condition.cloned().unwrap_or(Methods::Never);
            return match row(rule, *status) {
                None => vec![condition],
                Some(row) if row.methods == Methods::Never => vec![Methods::Never],
                Some(row) => vec![row.methods.clone(), condition],
            };
        }
        AttemptOutcome::Failure(failure) => *failure,
    };
    let (unsent, timeout) = match failure {
        Certificate | Protocol => return vec![Methods::Never],
        Proxy {
            status: Some(status),
        } => {
            return match row(rule, status) {
                Some(row) if row.methods != Methods::Never && rule.unsent_failures => {
                    vec![Methods::Any]
                }
                _ => vec![Methods::Never],
            };
        }
        Dns | Connect | Tls | NotProcessed | Proxy { status: None } => (true, false),
        ConnectTimeout => (true, true),
        Timeout => (false, true),
        AfterRedirect | Closed | Body => (false, false),
        other => panic!("the model knows no {other:?}"),
    };
    vec![if timeout && !rule.timeouts {
        Methods::Never
    } else if unsent && rule.unsent_failures {
        Methods::Any
    } else {
        rule.sent_failures.clone()
    }]
}

/// The first status rule that contains a status.
fn row(rule: &RetryRule, status: StatusCode) -> Option<&StatusRule> {
    rule.statuses
        .iter()
        .find(|row| contain(&row.statuses, status))
}

fn contain(statuses: &[StatusMatch], status: StatusCode) -> bool {
    for one in statuses {
        let (first, last) = match *one {
            StatusMatch::Code(code) => (code, code),
            StatusMatch::Range(first, last) => (first, last),
        };
        if first <= status.as_u16() && status.as_u16() <= last {
            return true;
        }
    }
    false
}

fn is_among(methods: &Methods, facts: &Attempt<'_>) -> bool {
    match methods {
        Methods::Never => false,
        Methods::Idempotent => facts.idempotent,
        Methods::Listed(listed) => listed.iter().any(|each| each == facts.method),
        Methods::Any => true,
    }
}

/// What the server asks for.
fn asked(rule: &RetryRule, outcome: &AttemptOutcome<'_>, facts: &Attempt<'_>) -> Option<Duration> {
    if facts.server_delay.is_some() {
        return facts.server_delay;
    }
    let AttemptOutcome::Response { status, headers } = outcome else {
        return None;
    };
    for header in &rule.retry_after.headers {
        if !header.statuses.is_empty() && !contain(&header.statuses, *status) {
            continue;
        }
        if let Some(wait) = wait_header(header, headers, facts.now) {
            return Some(wait);
        }
    }
    match rule.retry_after.source {
        RetryAfterSource::Ignore => None,
        RetryAfterSource::Header => retry_after(headers, facts.now),
        RetryAfterSource::MsThenHeader => retry_after_ms(headers, facts.now),
    }
}

pub fn delay(backoff: &Backoff, attempt: u32, random: f64) -> Duration {
    let max = ms(backoff.max);
    let delay = power(ms(backoff.base), backoff.growth, attempt).min(max);
    let jittered = match backoff.jitter {
        Jitter::NoJitter => delay,
        Jitter::Full => (delay as f64 * sample(random)).trunc() as u128,
        Jitter::Proportional { lo, hi } => {
            let way = (sample(random) * (f64::from(hi) - f64::from(lo))).trunc() as i64;
            delay * u128::try_from(i64::from(lo) + way).unwrap() / 1000
        }
    };
    duration(jittered.min(max))
}

/// The whole part of `base * (growth / 1000)^attempt`, or 2^64 where it is not below that.
///
/// One multiplication after the other, each to the 192nd place behind the point. A product that is
/// an integer is met exactly, since every one on the way to it is an integer too.
fn power(base: u128, growth: u32, attempt: u32) -> u128 {
    /// The places behind the point, of 32 bits each; three more are before it.
    const PLACES: usize = 6;
    const TOO_LARGE: u128 = 1 << 64;

    // The lowest place first.
    let mut product = [0_u32; PLACES + 3];
    product[PLACES] = base as u32;
    product[PLACES + 1] = (base >> 32) as u32;
    for _ in 0..attempt {
        let mut carry = 0;
        for place in &mut product {
            let sum = u64::from(*place) * u64::from(growth) + carry;
            *place = sum as u32;
            carry = sum >> 32;
        }
        let mut rest = carry;
        for place in product.iter_mut().rev() {
            let part = (rest << 32) | u64::from(*place);
            *place = (part / 1000) as u32;
            rest = part % 1000;
        }
        let whole = whole_of(&product[PLACES..]);
        // Nothing comes back from above 2^64, nor from below 1, nor from nothing at all.
        if whole >= TOO_LARGE && growth >= 1000 {
            return TOO_LARGE;
        }
        if whole == 0 && growth <= 1000 || product == [0; PLACES + 3] || growth == 1000 {
            break;
        }
    }
    whole_of(&product[PLACES..]).min(TOO_LARGE)
}

fn whole_of(places: &[u32]) -> u128 {
    let mut whole = 0;
    for place in places.iter().rev() {
        whole = (whole << 32) | u128::from(*place);
    }
    whole
}

pub fn parse_retry_after(value: &str, now: Option<SystemTime>) -> Option<Duration> {
    let seconds = wait(value, WaitFormat::Seconds, now);
    seconds.or_else(|| wait(value, WaitFormat::HttpDate, now))
}

pub fn retry_after_ms(headers: &HeaderMap, now: Option<SystemTime>) -> Option<Duration> {
    for value in headers.get_all("retry-after-ms") {
        if let Some(wait) = text(value).and_then(|text| wait(&text, WaitFormat::Millis, now)) {
            return Some(wait);
        }
    }
    retry_after(headers, now)
}

fn retry_after(headers: &HeaderMap, now: Option<SystemTime>) -> Option<Duration> {
    for value in headers.get_all("retry-after") {
        if let Some(wait) = text(value).and_then(|text| parse_retry_after(&text, now)) {
            return Some(wait);
        }
    }
    None
}

pub fn wait_header(
    header: &WaitHeader,
    headers: &HeaderMap,
    now: Option<SystemTime>,
) -> Option<Duration> {
    for value in headers.get_all(&header.name) {
        if let Some(wait) = text(value).and_then(|text| wait(&text, header.format, now)) {
            return Some(wait);
        }
    }
    None
}

/// The value of a header, if all of it can be printed.
fn text(value: &HeaderValue) -> Option<String> {
    let mut text = String::new();
    for byte in value.as_bytes() {
        match byte {
            b'\t' | b' '..=b'~' => text.push(char::from(*byte)),
            _ => return None,
        }
    }
    Some(text)
}

fn wait(value: &str, format: WaitFormat, now: Option<SystemTime>) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t', '\r', '\n']);
    match format {
        WaitFormat::Seconds => Some(duration(decimal(value)?)),
        WaitFormat::Millis => Some(duration(decimal(value)? / 1000)),
        WaitFormat::UnixSeconds => Some(until(decimal(value)?.min(MOST), now?)),
        WaitFormat::UnixMillis => Some(until((decimal(value)? / 1000).min(MOST), now?)),
        WaitFormat::HttpDate => Some(until(date(value)? * 1000, now?)),
    }
}

/// The number in thousandths, what is below cut off; as many as can be counted where it is more.
fn decimal(value: &str) -> Option<u128> {
    let parts: Vec<&str> = value.split('.').collect();
    let (whole, fraction) = match parts[..] {
        [whole] => (whole, "0"),
        [whole, fraction] => (whole, fraction),
        _ => return None,
    };
    for part in [whole, fraction] {
        if part.is_empty() || part.contains(|each: char| !each.is_ascii_digit()) {
            return None;
        }
    }
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let digits = format!("{whole}{thousandths}");
    // What has more digits than fit is more than can be counted.
    Some(match digits.trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().unwrap_or(u128::MAX),
    })
}

/// The milliseconds from `now` to a moment in milliseconds after 1970 began, or none.
fn until(moment: u128, now: SystemTime) -> Duration {
    let moment = i128::try_from(moment).unwrap() * 1_000_000;
    let now = match now.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i128::try_from(after.as_nanos()).unwrap(),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap(),
    };
    duration(u128::try_from((moment - now) / 1_000_000).unwrap_or(0))
}

/// The moment that a date names, in seconds after 1970 began.
fn date(text: &str) -> Option<u128> {
    if let Some(moment) = plain_date(text) {
        return Some(moment);
    }
    // A leap second is the one after `:59`.
    let parts: Vec<&str> = text.splitn(3, ':').collect();
    match parts[..] {
        [day, minutes, rest] => {
            let rest = rest.strip_prefix("60")?;
            plain_date(&format!("{day}:{minutes}:59{rest}")).map(|moment| moment + 1)
        }
        _ => None,
    }
}

const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Writes every day that the text could mean in every form there is, and looks which of them it is.
fn plain_date(text: &str) -> Option<u128> {
    let colon = text.find(':')?;
    let time = text.get(colon.checked_sub(2)?..colon + 6)?;
    let seconds = time_of_day(time)?;
    for number in text.split(|each: char| !each.is_ascii_digit()) {
        let years = match (number.len(), number.parse::<u128>()) {
            (2, Ok(number)) => [1900 + number, 2000 + number],
            (4, Ok(number)) => [number, number],
            _ => continue,
        };
        for year in years.into_iter().filter(|year| *year >= 1970) {
            for (month, name) in MONTHS.into_iter().enumerate() {
                if !text.contains(name) {
                    continue;
                }
                let before = days_before(year, month);
                for day in 1..=days_in(year, month) {
                    let days = before + day - 1;
                    let weekday = WEEKDAYS[(days % 7) as usize];
                    if forms(weekday, day, name, year, time).contains(&text.to_owned()) {
                        return Some(days * 86_400 + seconds);
                    }
                }
            }
        }
    }
    None
}

/// A date in the three forms of RFC 9110, 5.6.7.
fn forms(weekday: &str, day: u128, month: &str, year: u128, time: &str) -> Vec<String> {
    let short = &weekday[..3];
    let mut forms = vec![
        format!("{short}, {day:02} {month} {year} {time} GMT"),
        // Not in the RFC, but read all the same.
        format!("{short}, {day:02} {month} {year} {time} UTC"),
        format!("{short} {month} {day:2} {time} {year}"),
        // Not as C's `asctime` writes it, but read all the same.
        format!("{short} {month} {day:02} {time} {year}"),
    ];
    if (1970..2070).contains(&year) {
        let year = year % 100;
        forms.push(format!("{weekday}, {day:02}-{month}-{year:02} {time} GMT"));
    }
    forms
}

/// The seconds in `08:49:37`.
fn time_of_day(text: &str) -> Option<u128> {
    let mut seconds = 0;
    for (part, end) in text.split(':').zip([24, 60, 60]) {
        let number = (0..end).find(|number| part == format!("{number:02}"))?;
        seconds = seconds * 60 + number;
    }
    Some(seconds)
}

/// The days from the beginning of 1970 to that of a month.
fn days_before(year: u128, month: usize) -> u128 {
    let months = (1970..year).flat_map(|year| (0..12).map(move |month| (year, month)));
    let months = months.chain((0..month).map(|month| (year, month)));
    months.map(|(year, month)| days_in(year, month)).sum()
}

fn days_in(year: u128, month: usize) -> u128 {
    let leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let february = if leap { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month]
}

/// `random` between 0 and the largest number below 1; what is not a number is 0.
fn sample(random: f64) -> f64 {
    if random >= 1.0 {
        1.0 - f64::EPSILON / 2.0
    } else if random > 0.0 {
        random
    } else {
        0.0
    }
}

/// The most milliseconds that are counted.
const MOST: u128 = u64::MAX as u128;

fn ms(duration: Duration) -> u128 {
    duration.as_millis().min(MOST)
}

fn duration(ms: u128) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}
