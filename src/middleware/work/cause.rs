//! Why a work failed, as far as its error says.

use std::error::Error as StdError;
use std::time::Duration;

use http::StatusCode;
use reqwest::Url;

use crate::middleware::classify::{classify_body, classify_request};
use crate::middleware::error::RetryError;
use crate::middleware::error_chain::{chain, find};
use crate::middleware::policy::Settings;
use crate::rule::TransportError;

/// What failed, and where.
#[derive(Clone, Copy)]
pub(super) struct Cause<'a> {
    pub(super) kind: CauseKind,
    /// Where it happened, if the error says so.
    pub(super) url: Option<&'a Url>,
}

#[derive(Clone, Copy)]
pub(super) enum CauseKind {
    /// A response with this status was turned into an error.
    Status(StatusCode),
    /// No head of a response came.
    NoHead(TransportError),
    /// A body that could not be read to its end.
    Body(TransportError),
    /// A send was ended by this crate.
    Own(OwnError),
    /// It is no failure of the transport.
    Other,
}

#[derive(Clone, Copy)]
pub(super) enum OwnError {
    TotalTimeout,
    HeadTimeout,
    /// The origin asked for rest for so much longer.
    Paused(Duration),
    BodySource,
}

impl<'a> Cause<'a> {
    /// What the outermost error that is known says.
    pub(super) fn of(error: &'a (dyn StdError + 'static), settings: &Settings) -> Self {
        let known = chain(error).find_map(|link| {
            if let Some(own) = link.downcast_ref::<RetryError>() {
                let kind = CauseKind::Own(OwnError::from(own));
                return Some(Self { kind, url: None });
            }
            if let Some(error) = link.downcast_ref::<reqwest_middleware::Error>() {
                if is_of_an_answer(error) {
                    return None;
                }
                let kind = CauseKind::NoHead(settings.classify_with(error)?);
                let url = error.url();
                return Some(Self { kind, url });
            }
            let error = link.downcast_ref::<reqwest::Error>()?;
            let kind = of_reqwest(error);
            let url = error.url();
            Some(Self { kind, url })
        });
        known.unwrap_or(Self {
            kind: CauseKind::Other,
            url: None,
        })
    }
}

/// True if there was a head, or the error is this crate's own: no closure is asked about these.
fn is_of_an_answer(error: &reqwest_middleware::Error) -> bool {
    let of_answer =
        |error: &reqwest::Error| error.is_status() || error.is_body() || error.is_decode();
    find(error).is_some_and(of_answer) || find::<RetryError>(error).is_some()
}

fn of_reqwest(error: &reqwest::Error) -> CauseKind {
    if error.is_request() {
        return classify_request(error).map_or(CauseKind::Other, CauseKind::NoHead);
    }
    if error.is_body() || error.is_decode() {
        return classify_body(error).map_or(CauseKind::Other, CauseKind::Body);
    }
    match error.status() {
        Some(status) if error.is_status() => CauseKind::Status(status),
        _ => CauseKind::Other,
    }
}

impl From<&RetryError> for OwnError {
    fn from(error: &RetryError) -> Self {
        match error {
            RetryError::TotalTimeout { .. } => Self::TotalTimeout,
            RetryError::HeadTimeout { .. } => Self::HeadTimeout,
            RetryError::OriginPaused { wait } => Self::Paused(*wait),
            RetryError::BodySource { .. } => Self::BodySource,
        }
    }
}

impl OwnError {
    pub(super) fn class(self) -> TransportError {
        match self {
            Self::TotalTimeout | Self::HeadTimeout => TransportError::Timeout,
            Self::Paused(_) | Self::BodySource => TransportError::NotProcessed,
        }
    }
}
