//! What a GET without a network costs where more is set: pauses of origins, and settings of its own
//! in the extensions of the request.

use std::sync::Arc;

use http::Extensions;
use reqwest_retry_rules::{PauseTerms, RetryPolicy};
use tokio::runtime::Runtime;

use crate::clients::{self, Answers};
use crate::rounds::Rounds;
use crate::sends::{ROUNDS, SENDS, get, runtime, sends};
use crate::table::Table;

const PAUSES: &str = "GET that succeeds, `pause_origins`";
const EXTENSIONS: &str = "GET that succeeds, in its extensions";

pub fn report(table: &mut Table) {
    let runtime = runtime();
    pauses(table, &runtime);
    extensions(table, &runtime);
}

fn pauses(table: &mut Table, runtime: &Runtime) {
    let off = RetryPolicy::from(clients::rule());
    let on = RetryPolicy::from(clients::rule()).pause_origins(PauseTerms::default());
    let runs = [("off", off), ("on", on)].map(|(who, policy)| {
        let client = clients::without_network(clients::ours(policy), Answers::new([200]));
        (who, sends(runtime, client, SENDS, |_| get(), |_| ()))
    });
    let rounds = Rounds::run(ROUNDS, runs.into());
    for who in ["off", "on"] {
        table.side(PAUSES, who, &rounds, "off", "");
    }
}

/// Puts into the extensions what the caller of a request would.
type Fill = Box<dyn Fn(&mut Extensions)>;

fn extensions(table: &mut Table, runtime: &Runtime) {
    let rule = clients::rule();
    let shared = Arc::new(rule.clone());
    let policy = RetryPolicy::from(rule.clone());
    // The first value in a map makes the map. That is no matter of ours, and is shown by itself.
    let fills: [(&str, Fill); 5] = [
        ("nothing", Box::new(|_| ())),
        ("a value of something else", insert(7_u64)),
        ("a `RetryPolicy`", insert(policy)),
        ("an `Arc<RetryRule>`", insert(shared)),
        ("a `RetryRule`", insert(rule.clone())),
    ];
    let names = fills.each_ref().map(|(who, _)| *who);
    let runs = fills.map(|(who, fill)| {
        let layer = clients::ours(rule.clone());
        let client = clients::without_network(layer, Answers::new([200]));
        (who, sends(runtime, client, SENDS, |_| get(), fill))
    });
    let rounds = Rounds::run(ROUNDS, runs.into());
    for who in names {
        table.side(EXTENSIONS, who, &rounds, "nothing", "");
    }
}

fn insert<T: Clone + Send + Sync + 'static>(value: T) -> Fill {
    Box::new(move |extensions| {
        extensions.insert(value.clone());
    })
}
