//! What happens on real sockets: servers on loopback that fail in every way, and count what reaches
//! them.
#![allow(clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod classification;
mod complete_body;
mod downloads;
mod drain;
mod each_client;
mod execute;
#[cfg(feature = "astral")]
mod fork;
mod generated_keys;
mod judge_body;
mod lying_servers;
mod odd_places;
mod origin_pauses;
mod other_requests;
mod redirects;
mod refused_streams;
mod replay;
mod work;
