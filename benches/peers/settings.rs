//! What a GET without a network costs where more is set: pauses of origins, and settings of its own
//! in the extensions of the request.

use std::sync::Arc;

use http::Extensions;
use reqwest_retry_rules::{PauseTerms, RetryPolicy};
use tokio::runtime::Runtime;

use crate::clients::{self, Answers};
use crate::rounds::{Rounds, Runs};
use crate::sends::{ROUNDS, SENDS, get, runtime, sends};
use crate::table::Table;

const PAUSES: &str = "GET that succeeds, `pause_origins`";
const EXTENSIONS: &str = "GET that succeeds, in its extensions";

const NOTHING: &str = "nothing";
/// The first value in a map makes the map, whoever reads it.
const OTHER: &str = "a value of something else";
const POLICY: &str = "a `RetryPolicy`";
const SHARED: &str = "an `Arc<RetryRule>`";
const RULE: &str = "a `RetryRule`";

/// What a process of its own measures, by its name; `None` if it is none of these.
pub fn alone(what: &str) -> Option<Rounds> {
    let runtime = runtime();
    let runs = match what {
        PAUSES => with_pauses(&runtime),
        EXTENSIONS => with_extensions(&runtime),
        _ => return None,
    };
    Some(Rounds::run(ROUNDS, runs))
}

pub fn report(table: &mut Table) {
    let rounds = Rounds::of_processes(PAUSES);
    for who in ["off", "on"] {
        table.side(PAUSES, who, &rounds, "off", "");
    }
    let rounds = Rounds::of_processes(EXTENSIONS);
    for who in [NOTHING, OTHER, POLICY, SHARED, RULE] {
        table.side(EXTENSIONS, who, &rounds, NOTHING, "");
    }
}

fn with_pauses(runtime: &Runtime) -> Runs<'_> {
    let off = RetryPolicy::from(clients::rule());
    let on = RetryPolicy::from(clients::rule()).pause_origins(PauseTerms::default());
    let runs = [("off", off), ("on", on)].map(|(who, policy)| {
        let client = clients::without_network(clients::ours(policy), Answers::new([200]));
        (who, sends(runtime, client, SENDS, |_| get(), |_| ()))
    });
    runs.into()
}

/// Puts into the extensions what the caller of a request would.
type Fill = Box<dyn Fn(&mut Extensions)>;

fn with_extensions(runtime: &Runtime) -> Runs<'_> {
    let rule = clients::rule();
    let shared = Arc::new(rule.clone());
    let policy = RetryPolicy::from(rule.clone());
    let fills: [(&str, Fill); 5] = [
        (NOTHING, Box::new(|_| ())),
        (OTHER, insert(7_u64)),
        (POLICY, insert(policy)),
        (SHARED, insert(shared)),
        (RULE, insert(rule.clone())),
    ];
    let runs = fills.map(|(who, fill)| {
        let layer = clients::ours(rule.clone());
        let client = clients::without_network(layer, Answers::new([200]));
        (who, sends(runtime, client, SENDS, |_| get(), fill))
    });
    runs.into()
}

fn insert<T: Clone + Send + Sync + 'static>(value: T) -> Fill {
    Box::new(move |extensions| {
        extensions.insert(value.clone());
    })
}
