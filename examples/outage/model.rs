//! The service, the clients and the simulated clock. Time is in whole milliseconds.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use reqwest_retry_rules::{Attempt, AttemptOutcome, Decision, RetryRule, retry_after_ms};

pub const SECOND: u32 = 1000;
pub const OUTAGE_START: u32 = 60 * SECOND;
pub const OUTAGE_END: u32 = OUTAGE_START + 600 * SECOND;
pub const END: u32 = OUTAGE_END + 600 * SECOND;

/// How long a client leaves between two sends, on average.
const PAUSE: u32 = 60 * SECOND;
/// The usual load is this share of the capacity.
const USUAL_LOAD: f64 = 2.0 / 3.0;
/// What a refusal costs of what an answer costs: the request is received, parsed, logged.
const REFUSAL: f64 = 0.2;
/// How much work waits in the service's queue at most.
const QUEUE: f64 = SECOND as f64;
/// The way to the service and back: at least this, and up to three times as much again.
const ROUND_TRIP: u32 = 20;
/// How many clients share a process, and with it a retry budget and what the service asked for.
const CLIENTS_OF_A_PROCESS: u32 = 5000;

/// What is compared: a rule, what the service says to it, and whether a budget holds.
pub struct Policy {
    pub name: &'static str,
    pub rule: RetryRule,
    /// The headers of every 503.
    pub refusal: HeaderMap,
    pub budget: bool,
    /// Whether all sends of a process wait together once the service asked for that, and by how many
    /// thousandths of the wait they are spread then.
    pub pause: Option<u32>,
}

/// What came of a policy.
pub struct Run {
    pub seconds: Vec<Second>,
    pub sends: u64,
    /// Sends that were given up.
    pub lost: u64,
}

/// Requests of one second.
#[derive(Clone, Copy, Default)]
pub struct Second {
    /// What reached the service.
    pub sent: u32,
    /// What of it was refused.
    pub refused: u32,
    /// What was answered in this second, whenever it was sent.
    pub answered: u32,
}

impl Run {
    /// The most requests in one second of the outage.
    pub fn peak_in_outage(&self) -> u32 {
        self.peak(OUTAGE_START, OUTAGE_END)
    }

    /// The most requests in one second once the service is back.
    pub fn peak_after(&self) -> u32 {
        self.peak(OUTAGE_END, END)
    }

    fn peak(&self, from: u32, to: u32) -> u32 {
        let seconds = &self.seconds[(from / SECOND) as usize..(to / SECOND) as usize];
        seconds.iter().map(|second| second.sent).max().unwrap_or(0)
    }

    pub fn refused(&self) -> u64 {
        let refused = self.seconds.iter().map(|second| u64::from(second.refused));
        refused.sum()
    }

    /// How many seconds after the outage the service goes on refusing more than one request of a
    /// hundred; `None` where that has no end.
    pub fn recovery(&self) -> Option<u32> {
        let refusing = |second: &Second| second.refused > second.sent / 100;
        let last = self.seconds.iter().rposition(refusing).unwrap_or(0) as u32;
        let recovered = (last + 1).max(OUTAGE_END / SECOND);
        (recovered < END / SECOND).then_some(recovered - OUTAGE_END / SECOND)
    }
}

/// Lets `clients` clients go through the outage under `policy`.
pub fn run(policy: &Policy, clients: u32, seed: u64) -> Run {
    let mut chance = Chance(seed);
    let mut agenda = Agenda::new();
    let mut service = Service::new(clients);
    let processes = clients.div_ceil(CLIENTS_OF_A_PROCESS);
    let mut budgets = vec![Budget::default(); processes as usize];
    let mut pauses = vec![Pause::default(); processes as usize];
    let mut seconds = vec![Second::default(); (END / SECOND) as usize];
    let (mut sends, mut lost) = (0, 0);

    // One half listens on an open connection, which the outage cuts; the other half asks now and
    // then.
    let listeners = clients / 2;
    for client in 0..clients {
        let first = if client < listeners {
            OUTAGE_START + chance.round_trip()
        } else {
            chance.pause()
        };
        agenda.add(Request::first(client, first));
    }

    let mut due = Vec::new();
    for now in 0..END {
        let second = (now / SECOND) as usize;
        agenda.swap(now, &mut due);
        for request in due.drain(..) {
            let client = request.client;
            let process = (client % processes) as usize;
            let (budget, pause) = (&mut budgets[process], &mut pauses[process]);
            if let Some(spread) = policy.pause {
                if let Some(wait) = pause.left(now, 0, spread, &mut chance) {
                    agenda.add(request.held_back(now + wait));
                    continue;
                }
            }
            seconds[second].sent += 1;
            sends += u64::from(request.attempt == 0);

            if let Some(queued) = service.answer(now) {
                if let Some(second) = seconds.get_mut(((now + queued) / SECOND) as usize) {
                    second.answered += 1;
                }
                budget.deposit(now);
                if client >= listeners {
                    let next = now + queued + chance.round_trip() + chance.pause();
                    agenda.add(Request::first(client, next));
                }
                continue;
            }

            seconds[second].refused += 1;
            let refused = now + chance.round_trip();
            let paused = policy.pause.and_then(|spread| {
                let asked = asked_wait(&policy.refusal)?;
                pause.ask(asked, now, refused);
                pause.left(refused, asked, spread, &mut chance)
            });
            let facts = Attempt {
                paused: paused.map(|wait| Duration::from_millis(wait.into())),
                attempt: request.attempt,
                random: chance.sample(),
                elapsed: Duration::from_millis(u64::from(refused - request.begun)),
                ..Attempt::new(&Method::GET)
            };
            let outcome = AttemptOutcome::Response {
                status: StatusCode::SERVICE_UNAVAILABLE,
                headers: &policy.refusal,
            };
            match policy.rule.decide(&outcome, &facts) {
                Decision::Wait(wait) if !policy.budget || budget.withdraw(now) => {
                    agenda.add(request.again(refused + wait.as_millis() as u32));
                }
                _ => {
                    lost += 1;
                    agenda.add(Request::first(client, refused + chance.pause()));
                }
            }
        }
    }

    Run {
        seconds,
        sends,
        lost,
    }
}

/// Requests a second that the service can answer.
pub fn capacity(clients: u32) -> f64 {
    let askers = f64::from(clients - clients / 2);
    askers * f64::from(SECOND) / f64::from(PAUSE) / USUAL_LOAD
}

/// A queue with one worker: it refuses at once what would wait too long, and to refuse is work
/// as well.
struct Service {
    work: f64,
    busy_until: f64,
}

impl Service {
    fn new(clients: u32) -> Self {
        Service {
            work: f64::from(SECOND) / capacity(clients),
            busy_until: 0.0,
        }
    }

    /// How long an answer takes, where there is one.
    fn answer(&mut self, now: u32) -> Option<u32> {
        if (OUTAGE_START..OUTAGE_END).contains(&now) {
            return None;
        }
        let now = f64::from(now);
        let begins = self.busy_until.max(now);
        if begins - now > QUEUE {
            self.busy_until = begins + REFUSAL * self.work;
            return None;
        }
        self.busy_until = begins + self.work;
        Some((self.busy_until - now) as u32)
    }
}

/// The retry budget of a process, as tower's `TpsBudget` counts by default, in simulated time: a
/// retry costs five, an answer brings one, both count for ten seconds, and ten retries a second
/// are free.
#[derive(Clone, Default)]
struct Budget {
    seconds: [i32; 10],
    second: u32,
}

impl Budget {
    const RETRY: i32 = 5;
    const RESERVE: i32 = 10 * 10 * Budget::RETRY;

    fn deposit(&mut self, now: u32) {
        *self.current(now) += 1;
    }

    fn withdraw(&mut self, now: u32) -> bool {
        *self.current(now) -= Budget::RETRY;
        let left = Budget::RESERVE + self.seconds.iter().sum::<i32>() >= 0;
        if !left {
            *self.current(now) += Budget::RETRY;
        }
        left
    }

    fn current(&mut self, now: u32) -> &mut i32 {
        let second = now / SECOND;
        let forgotten = (second - self.second).min(self.seconds.len() as u32);
        for gone in 0..forgotten {
            self.seconds[((second - gone) % 10) as usize] = 0;
        }
        self.second = second;
        &mut self.seconds[(second % 10) as usize]
    }
}

/// How long a refusal asks to wait.
fn asked_wait(refusal: &HeaderMap) -> Option<u32> {
    let wait = retry_after_ms(refusal, None)?;
    u32::try_from(wait.as_millis()).ok()
}

/// Until when the service asked a process for rest, as `RetryPolicy::pause_origins` keeps it.
#[derive(Clone, Copy, Default)]
struct Pause {
    set: u32,
    until: u32,
    wait: u32,
}

impl Pause {
    /// A refusal of what was sent at `sent` asks for a wait. Only what was sent since the pause was
    /// set has news.
    fn ask(&mut self, wait: u32, sent: u32, now: u32) {
        if sent > self.set && now + wait > self.until {
            *self = Pause {
                set: now,
                until: now + wait,
                wait,
            };
        }
    }

    /// How long a send waits that was itself asked for the wait `own`.
    fn left(&self, now: u32, own: u32, spread: u32, chance: &mut Chance) -> Option<u32> {
        if !(self.set..self.until).contains(&now) {
            return None;
        }
        let part = (chance.sample() * f64::from(spread)) as u32;
        let extra = u64::from(self.wait.max(own)) * u64::from(part) / 1000;
        Some((self.until - now).max(own) + extra as u32)
    }
}

/// A request on its way: whose it is, when it reaches the service, and of which send it is the
/// last attempt so far.
#[derive(Clone, Copy)]
struct Request {
    client: u32,
    due: u32,
    begun: u32,
    attempt: u32,
}

impl Request {
    fn first(client: u32, due: u32) -> Self {
        Request {
            client,
            due,
            begun: due,
            attempt: 0,
        }
    }

    fn held_back(self, due: u32) -> Self {
        Request { due, ..self }
    }

    fn again(self, due: u32) -> Self {
        Request {
            due,
            attempt: self.attempt + 1,
            ..self
        }
    }
}

/// The requests to come: those of the second that has begun by the millisecond, the others by the
/// second. So the crowd of one second is all that is in use, whatever the number of clients.
struct Agenda {
    seconds: Vec<Vec<Request>>,
    millis: Vec<Vec<Request>>,
    second: u32,
}

impl Agenda {
    fn new() -> Self {
        Agenda {
            seconds: vec![Vec::new(); (END / SECOND) as usize],
            millis: vec![Vec::new(); SECOND as usize],
            second: u32::MAX,
        }
    }

    /// Adds a request; one that is due after the end is forgotten.
    fn add(&mut self, request: Request) {
        let second = request.due / SECOND;
        if second == self.second {
            self.millis[(request.due % SECOND) as usize].push(request);
        } else if let Some(second) = self.seconds.get_mut(second as usize) {
            second.push(request);
        }
    }

    /// Puts what is due in this millisecond, the one after the last that was asked for, into
    /// `due`, which is empty.
    fn swap(&mut self, now: u32, due: &mut Vec<Request>) {
        if now % SECOND == 0 {
            self.second = now / SECOND;
            for request in std::mem::take(&mut self.seconds[self.second as usize]) {
                self.add(request);
            }
        }
        std::mem::swap(&mut self.millis[(now % SECOND) as usize], due);
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A sample of `[0, 1)`.
    fn sample(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn round_trip(&mut self) -> u32 {
        ROUND_TRIP + (self.sample() * f64::from(3 * ROUND_TRIP)) as u32
    }

    /// A pause of exponential length, as of a client that asks at any time.
    fn pause(&mut self) -> u32 {
        (-(1.0 - self.sample()).ln() * f64::from(PAUSE)) as u32
    }
}
