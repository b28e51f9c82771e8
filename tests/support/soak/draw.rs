//! How a plan is drawn from the seed.

use std::time::Duration;

use http::Method;

use super::body::{Content, Made, Stretch};
use super::dice::Dice;
use super::fault::{Asked, End, Fault, Handshake, Hop, KINDS, Proxy, Refusal};
use super::plan::{Answer, Claim, Framing, Patience, Plan, RETRIES, Road};

impl Plan {
    /// The plan of the send of this number. The first ones begin with a fault of each kind in turn,
    /// so that chance leaves none out.
    pub fn new(seed: u64, id: usize) -> Plan {
        let kind = KINDS.get(id);
        let draws = (0_u64..).map(|draw| Dice::new(seed, id as u64 | draw << 32));
        let mut plans = draws.map(|mut dice| Plan::drawn(&mut dice, id));
        let fits = |plan: &Plan| kind.is_none_or(|kind| plan.begins_with(kind));
        plans.find(fits).expect("each kind is drawn now and then")
    }

    /// Whether the first attempt is certain to be made, and to come to its end, and meets this.
    fn begins_with(&self, kind: &str) -> bool {
        let meets = self.fault(0).is_some_and(|fault| fault.kind() == kind);
        let is_made = self.content.made != Made::FailingSource(0);
        let is_bounded = matches!(self.patience, Patience::Total(_) | Patience::Leaves(_));
        meets && is_made && !is_bounded
    }

    fn drawn(dice: &mut Dice, id: usize) -> Plan {
        let road = dice.weighted(&[
            (24, Road::Shared1),
            (8, Road::Stale1),
            (18, Road::Own1),
            (5, Road::Tls1),
            (7, Road::Proxied1),
            (16, Road::Shared2),
            (13, Road::Own2),
            (4, Road::Tls2),
            (5, Road::Proxied2),
        ]);
        let method = dice.weighted(&[
            (28, Method::GET),
            (6, Method::HEAD),
            (16, Method::PUT),
            (8, Method::DELETE),
            (28, Method::POST),
            (14, Method::PATCH),
        ]);
        let claim = claim(dice, &method);
        let repeatable = claim.makes_repeatable(&method);
        let faults = faults(dice, road, repeatable);
        let patience = patience(dice, &faults);
        Plan {
            id,
            road,
            content: content(dice, &method),
            method,
            claim,
            patience,
            completes: dice.weighted(&[(60, 0), (25, 1 << 20), (15, 600)]),
            drains: dice.weighted(&[(70, 64 * 1024), (15, 0), (15, 200)]),
            faults,
            answer: answer(dice, road),
        }
    }
}

fn claim(dice: &mut Dice, method: &Method) -> Claim {
    if method.is_idempotent() {
        dice.weighted(&[(95, Claim::Nothing), (5, Claim::Vouched(false))])
    } else {
        dice.weighted(&[
            (88, Claim::Nothing),
            (5, Claim::Vouched(true)),
            (7, Claim::Keyed),
        ])
    }
}

fn patience(dice: &mut Dice, faults: &[Fault]) -> Patience {
    let millis = |dice: &mut Dice, end| Duration::from_millis(1 + dice.below(end) as u64);
    if dice.percent(4) {
        return Patience::Leaves(millis(dice, 150));
    }
    if dice.percent(4) {
        return Patience::Total(millis(dice, 400));
    }
    if faults
        .iter()
        .any(|fault| matches!(fault, Fault::Slow { .. }))
        || dice.percent(1)
    {
        return dice.pick(&[Patience::Attempt, Patience::Request]);
    }
    Patience::Endless
}

fn content(dice: &mut Dice, method: &Method) -> Content {
    let rarely = matches!(*method, Method::GET | Method::HEAD | Method::DELETE);
    if dice.percent(if rarely { 90 } else { 8 }) {
        return Content {
            made: Made::Absent,
            bytes: Stretch::new(dice, 0),
        };
    }
    // Around the size up to which a body is copied, and of one and of many pieces on the wire.
    let length = match dice.below(100) {
        0..30 => 1 + dice.below(200),
        30..50 => 1000 + dice.below(50),
        50..88 => 1 + dice.below(16 * 1024),
        _ => 100_000 + dice.below(200_000),
    };
    let piece = 1 + length / (1 + dice.below(9));
    let bodies = dice.below(3) as u32;
    let of_known_length = [
        (50, Made::Whole),
        (6, Made::Measured),
        (8, Made::Source),
        (6, Made::SourceOfMeasured(piece)),
        (4, Made::FailingSource(bodies)),
    ];
    let in_chunks = [
        (14, Made::Stream(piece)),
        (6, Made::SourceOfStreams(piece)),
        (6, Made::SlowSource(piece)),
    ];
    // With GET and HEAD, hyper leaves a body of unknown length away.
    let all: Vec<_> = match *method {
        Method::GET | Method::HEAD => of_known_length.into(),
        _ => of_known_length.into_iter().chain(in_chunks).collect(),
    };
    let made = dice.weighted(&all);
    Content {
        made,
        bytes: Stretch::new(dice, length),
    }
}

fn answer(dice: &mut Dice, road: Road) -> Answer {
    let length = match dice.below(100) {
        0..20 => 0,
        20..80 => 1 + dice.below(2000),
        _ => 1 + dice.below(100_000),
    };
    Answer {
        status: dice.pick(&[200, 200, 200, 201, 404]),
        body: Stretch::new(dice, length),
        framing: dice.weighted(&[
            (50, Framing::Length),
            (35, Framing::Chunked),
            (15, Framing::UntilClose),
        ]),
        hint: dice.percent(10),
        parting: dice.percent(if road == Road::Stale1 { 50 } else { 5 }),
    }
}

fn faults(dice: &mut Dice, road: Road, repeatable: bool) -> Vec<Fault> {
    let count = dice.weighted(&[
        (25, 0),
        (30, 1),
        (20, 2),
        (11, 3),
        (8, 4),
        (4, RETRIES as usize + 1),
        (2, RETRIES as usize + 3),
    ]);
    // An HTTP/2 connection stays for the next attempt, so what waits on the road comes first.
    let on_the_road = match road {
        _ if !road.is_own() => 0,
        _ if road.is_http2() => dice.below(count + 1),
        _ => count,
    };
    let mut waits = 0;
    let mut one = |nth| {
        if nth < on_the_road && dice.percent(if road.is_http2() { 100 } else { 30 }) {
            on_the_way(dice, road)
        } else if !repeatable && dice.percent(60) {
            harmless(dice, road)
        } else {
            anything(dice, road)
        }
    };
    let mut faults = Vec::with_capacity(count);
    while faults.len() < count {
        let fault = one(faults.len());
        // Of what takes a whole timeout, two are enough for one send.
        waits += usize::from(fault.takes_a_timeout());
        if !fault.takes_a_timeout() || waits <= 2 {
            faults.push(fault);
        }
    }
    faults
}

/// A fault before there is a connection.
fn on_the_way(dice: &mut Dice, road: Road) -> Fault {
    let end = end(dice);
    let handshake = [
        (30, Fault::Handshake(Handshake::Ends(end))),
        (14, Fault::Handshake(Handshake::Garbage)),
        (14, Fault::Handshake(Handshake::Stranger)),
    ];
    let proxy = [
        (15, Fault::Refused),
        (30, Fault::Proxy(Proxy::Refuses(502))),
        (10, Fault::Proxy(Proxy::Refuses(403))),
        (4, Fault::Proxy(Proxy::Refuses(407))),
        (30, Fault::Proxy(Proxy::Ends(end))),
        (30, Fault::Proxy(Proxy::Silent)),
    ];
    let plain = [(25, Fault::NoName), (40, Fault::Refused), (5, Fault::Hang)];
    let dropped = [(25, Fault::Dropped(end))];
    let all: Vec<_> = match (road.is_proxied(), road.is_tls()) {
        (true, _) => proxy.into_iter().chain(handshake).collect(),
        (false, true) => plain.into_iter().chain(handshake).collect(),
        (false, false) => plain.into_iter().chain(dropped).collect(),
    };
    dice.weighted(&all)
}

/// A fault that leaves the request unprocessed, and says so.
fn harmless(dice: &mut Dice, road: Road) -> Fault {
    let refusal = refusal(dice, 429, false, None);
    if !road.is_http2() {
        return refusal;
    }
    let read = dice.percent(50);
    dice.weighted(&[
        (45, refusal),
        (45, Fault::StreamRefused { read }),
        (10, Fault::EarlyBusy),
    ])
}

/// A fault of any kind on a connection.
fn anything(dice: &mut Dice, road: Road) -> Fault {
    let (end, processed, read) = (end(dice), dice.percent(50), dice.percent(50));
    let status = dice.pick(&[500, 502, 503, 504]);
    let status_said = dice.pick(&[409, 429, 500, 503]);
    let go_on = dice.percent(50);
    let redirect = dice.pick(&[301, 302, 303, 303, 307, 308]);
    let hop = dice.pick(&[
        Hop::Works,
        Hop::Refused,
        Hop::Refused,
        Hop::Refused,
        Hop::NoName,
        Hop::Cut,
    ]);
    let reason = dice.pick(&[0, 2, 11]);
    let reset = dice.pick(&[2, 8, 11]);
    let common = [
        (6, Fault::Slow { processed }),
        (24, refusal(dice, status, processed, None)),
        (12, refusal(dice, 429, false, None)),
        (
            3,
            refusal(dice, status_said, !go_on && processed, Some(go_on)),
        ),
        (3, Fault::Early),
        (3, Fault::EarlyBusy),
        (12, Fault::Redirect(redirect, hop)),
        (8, Fault::BrokenBody { chunked: read, end }),
    ];
    let http1 = [
        (8, Fault::Unread(end)),
        (8, Fault::HalfRead(end)),
        (14, Fault::Lost(end)),
        (6, Fault::HalfHead(end)),
        (2, Fault::Garbage),
    ];
    let streams = [
        (10, Fault::StreamRefused { read }),
        (
            10,
            Fault::StreamReset {
                reason: reset,
                processed,
            },
        ),
    ];
    let connection = [
        (5, Fault::Unread(end)),
        (5, Fault::HalfRead(end)),
        (8, Fault::Lost(end)),
        (14, Fault::LeftOut { reason, read }),
        (14, Fault::GoneAway { reason }),
        (2, Fault::Garbage),
    ];
    // What ends a shared connection strikes all that are on it.
    if road == Road::Shared2 && dice.percent(2) {
        return dice.pick(&[Fault::Unread(end), Fault::Lost(end)]);
    }
    let all: Vec<_> = match (road.is_http2(), road.is_own()) {
        (false, _) => common.into_iter().chain(http1).collect(),
        (true, true) => common
            .into_iter()
            .chain(streams)
            .chain(connection)
            .collect(),
        (true, false) => common.into_iter().chain(streams).collect(),
    };
    match dice.weighted(&all) {
        Fault::BrokenBody { chunked, .. } if road == Road::Shared2 => Fault::BrokenBody {
            chunked,
            end: End::Close,
        },
        fault => fault,
    }
}

fn refusal(dice: &mut Dice, status: u16, processed: bool, said: Option<bool>) -> Fault {
    let wait = dice.below(20) as u64;
    let asked = dice.weighted(&[
        (45, Asked::Nothing),
        (14, Asked::Millis(wait)),
        (14, Asked::Seconds(wait)),
        (12, Asked::Unreadable(wait)),
        (12, Asked::Date),
        (3, Asked::TooLong),
    ]);
    let length = match dice.below(100) {
        0..25 => 0,
        25..80 => 1 + dice.below(500),
        80..95 => 1 + dice.below(40_000),
        _ => 70_000,
    };
    let late = Duration::from_millis(dice.below(25) as u64);
    Fault::Refusal(Refusal {
        status,
        processed,
        asked,
        said,
        body: Stretch::new(dice, length),
        late: dice.percent(20).then_some(late),
    })
}

fn end(dice: &mut Dice) -> End {
    dice.pick(&[End::Close, End::Reset])
}
