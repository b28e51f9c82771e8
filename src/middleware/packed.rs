//! A request's head, and a small body with it, in one buffer.
//!
//! Most copies are never used, and then what they cost is their pieces: each is allocated here and,
//! with many sends at once, freed on another core. One buffer is one piece.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Version};
use reqwest::{Request, Url};
use url::Position;

use super::origin::Origin;

/// What reqwest lets one see of a request, without its method, and without its body if that is not
/// small.
pub(crate) struct Packed {
    version: Version,
    timeout: Option<Duration>,
    /// The URL, the headers in their order, the body.
    buffer: Vec<u8>,
    scheme_ends: usize,
    host_at: usize,
    path_at: usize,
    headers_at: usize,
    body_at: usize,
}

/// What stands before a header: in one number the length of its value, that of its name, which has
/// less than 16 bits (`http` accepts no longer one), and whether the value is sensitive.
const FRAME: usize = size_of::<u64>();
const NAME_BITS: u32 = 16;

impl Packed {
    /// Packs the head of `request` and this body.
    pub(crate) fn new(request: &Request, body: &[u8]) -> Self {
        let (url, headers) = (request.url(), request.headers());
        let lengths = headers
            .iter()
            .map(|(name, value)| FRAME + name.as_str().len() + value.len());
        let length = url.as_str().len() + lengths.sum::<usize>() + body.len();
        let mut buffer = Vec::with_capacity(length);
        buffer.extend_from_slice(url.as_str().as_bytes());
        let headers_at = buffer.len();
        for (name, value) in headers {
            let name = name.as_str().as_bytes();
            let lengths = (value.len() as u64) << NAME_BITS | name.len() as u64;
            let frame = lengths << 1 | u64::from(value.is_sensitive());
            buffer.extend_from_slice(&frame.to_ne_bytes());
            buffer.extend_from_slice(name);
            buffer.extend_from_slice(value.as_bytes());
        }
        let body_at = buffer.len();
        buffer.extend_from_slice(body);
        Self {
            version: request.version(),
            timeout: request.timeout().copied(),
            buffer,
            scheme_ends: url.scheme().len(),
            host_at: url[..Position::BeforeHost].len(),
            path_at: url[..Position::BeforePath].len(),
            headers_at,
            body_at,
        }
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        Origin {
            scheme: self.part(0, self.scheme_ends),
            authority: self.part(self.host_at, self.path_at),
        }
    }

    /// The body that was packed.
    pub(crate) fn body(&self) -> &[u8] {
        self.part(self.body_at, self.buffer.len())
    }

    /// A request with this method and head, and no body; `None` is for a buffer that was not packed
    /// here, and for a URL that would not come out as it went in.
    pub(crate) fn unpack(&self, method: Method) -> Option<Request> {
        let text = std::str::from_utf8(self.part(0, self.headers_at)).ok()?;
        let url = Url::parse(text).ok().filter(|url| url.as_str() == text)?;
        let mut request = Request::new(method, url);
        *request.version_mut() = self.version;
        if self.timeout.is_some() {
            // Not touched where none is set: that alone costs three allocations.
            *request.timeout_mut() = self.timeout;
        }
        let mut rest = self.part(self.headers_at, self.body_at);
        while let Some((frame, after)) = rest.split_first_chunk() {
            let frame = u64::from_ne_bytes(*frame);
            let lengths = frame >> 1;
            let name_length = usize::try_from(lengths & ((1 << NAME_BITS) - 1)).ok()?;
            let value_length = usize::try_from(lengths >> NAME_BITS).ok()?;
            let (name, after) = after.split_at_checked(name_length)?;
            let (value, after) = after.split_at_checked(value_length)?;
            rest = after;
            let mut value = HeaderValue::from_bytes(value).ok()?;
            value.set_sensitive(frame & 1 == 1);
            let name = HeaderName::from_bytes(name).ok()?;
            request.headers_mut().try_append(name, value).ok()?;
        }
        Some(request)
    }

    fn part(&self, from: usize, to: usize) -> &[u8] {
        self.buffer.get(from..to).unwrap_or_default()
    }
}
