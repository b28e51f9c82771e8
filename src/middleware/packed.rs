//! A request's head, and a small body with it, in one buffer.
//!
//! Most copies are never used, and then what they cost is their pieces: each is allocated here and,
//! with many sends at once, freed on another core. One buffer is one piece.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Version};
use reqwest::{Request, Url};

/// What reqwest lets one see of a request, without its body if that is not small.
pub(crate) struct Packed {
    method: Method,
    url: Url,
    version: Version,
    timeout: Option<Duration>,
    /// The headers in their order, then the body.
    buffer: Vec<u8>,
    body_at: usize,
}

/// What stands before a header: the length of its name, then that of its value, doubled and with one
/// more where the value is sensitive.
const FRAME: usize = 16;

impl Packed {
    /// Packs the head of `request` and this body.
    pub(crate) fn new(request: &Request, body: &[u8]) -> Self {
        let headers = request.headers();
        let lengths = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + FRAME);
        let mut buffer = Vec::with_capacity(lengths.sum::<usize>() + body.len());
        for (name, value) in headers {
            let name = name.as_str().as_bytes();
            let lengths = [
                name.len(),
                (value.len() << 1) | usize::from(value.is_sensitive()),
            ];
            for length in lengths {
                buffer.extend_from_slice(&(length as u64).to_ne_bytes());
            }
            buffer.extend_from_slice(name);
            buffer.extend_from_slice(value.as_bytes());
        }
        let body_at = buffer.len();
        buffer.extend_from_slice(body);
        Self {
            method: request.method().clone(),
            url: request.url().clone(),
            version: request.version(),
            timeout: request.timeout().copied(),
            buffer,
            body_at,
        }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The body that was packed.
    pub(crate) fn body(&self) -> &[u8] {
        self.buffer.get(self.body_at..).unwrap_or_default()
    }

    /// A request with this head and no body; `None` is for a buffer that was not packed here.
    pub(crate) fn unpack(&self) -> Option<Request> {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.version_mut() = self.version;
        if self.timeout.is_some() {
            // Not touched where none is set: that alone costs three allocations.
            *request.timeout_mut() = self.timeout;
        }
        let mut rest = self.buffer.get(..self.body_at)?;
        while !rest.is_empty() {
            let name_length = length(&mut rest)?;
            let value_length = length(&mut rest)?;
            let (value_length, sensitive) = (value_length >> 1, value_length & 1 == 1);
            let (name, after) = rest.split_at_checked(name_length)?;
            let (value, after) = after.split_at_checked(value_length)?;
            rest = after;
            let mut value = HeaderValue::from_bytes(value).ok()?;
            value.set_sensitive(sensitive);
            let name = HeaderName::from_bytes(name).ok()?;
            request.headers_mut().try_append(name, value).ok()?;
        }
        Some(request)
    }
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let (length, after) = rest.split_first_chunk()?;
    *rest = after;
    usize::try_from(u64::from_ne_bytes(*length)).ok()
}
