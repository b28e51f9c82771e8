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
    /// The [`Marks`], the URL, the headers in their order, the body.
    buffer: Box<[u8]>,
}

/// Where in the buffer its parts are.
struct Marks {
    scheme_ends: usize,
    host_at: usize,
    path_at: usize,
    headers_at: usize,
    body_at: usize,
}

impl Marks {
    const BYTES: usize = 5 * size_of::<usize>();

    fn write(&self, buffer: &mut Vec<u8>) {
        let marks = [
            self.scheme_ends,
            self.host_at,
            self.path_at,
            self.headers_at,
            self.body_at,
        ];
        for mark in marks {
            buffer.extend_from_slice(&mark.to_ne_bytes());
        }
    }

    fn read(buffer: &[u8]) -> Self {
        let mut rest = buffer;
        let mut next = || {
            let (mark, after) = rest
                .split_first_chunk()
                .unwrap_or((&[0; size_of::<usize>()], &[]));
            rest = after;
            usize::from_ne_bytes(*mark)
        };
        Self {
            scheme_ends: next(),
            host_at: next(),
            path_at: next(),
            headers_at: next(),
            body_at: next(),
        }
    }
}

/// What stands before a header: in one number the length of its value, that of its name in 16 bits
/// (`http` accepts no longer one), and whether the value is sensitive.
const FRAME: usize = size_of::<u64>();
const NAME_BITS: u32 = 16;

impl Packed {
    /// Packs the head of `request` and this body.
    #[inline]
    pub(crate) fn new(request: &Request, body: &[u8]) -> Self {
        let (url, headers) = (request.url(), request.headers());
        let lengths = headers
            .iter()
            .map(|(name, value)| FRAME + name.as_str().len() + value.len());
        let headers_at = Marks::BYTES + url.as_str().len();
        let body_at = headers_at + lengths.sum::<usize>();
        let path_at = Marks::BYTES + url[..Position::BeforePath].len();
        let marks = Marks {
            scheme_ends: Marks::BYTES + url.scheme().len(),
            host_at: path_at - Origin::from(url).authority.len(),
            path_at,
            headers_at,
            body_at,
        };
        let mut buffer = Vec::with_capacity(body_at + body.len());
        marks.write(&mut buffer);
        buffer.extend_from_slice(url.as_str().as_bytes());
        for (name, value) in headers {
            let name = name.as_str().as_bytes();
            let lengths = (value.len() as u64) << NAME_BITS | name.len() as u64;
            let frame = lengths << 1 | u64::from(value.is_sensitive());
            buffer.extend_from_slice(&frame.to_ne_bytes());
            buffer.extend_from_slice(name);
            buffer.extend_from_slice(value.as_bytes());
        }
        buffer.extend_from_slice(body);
        Self {
            version: request.version(),
            timeout: request.timeout().copied(),
            buffer: buffer.into_boxed_slice(),
        }
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        let marks = Marks::read(&self.buffer);
        Origin {
            scheme: self.part(Marks::BYTES, marks.scheme_ends),
            authority: self.part(marks.host_at, marks.path_at),
        }
    }

    /// The body that was packed.
    pub(crate) fn body(&self) -> &[u8] {
        self.part(Marks::read(&self.buffer).body_at, self.buffer.len())
    }

    /// The URL; `None` is for one whose text is not read back as the same. A host that has a label
    /// of a thousand letters beyond ASCII is such a one.
    pub(crate) fn url(&self) -> Option<Url> {
        let headers_at = Marks::read(&self.buffer).headers_at;
        let text = std::str::from_utf8(self.part(Marks::BYTES, headers_at)).ok()?;
        Url::parse(text).ok().filter(|url| url.as_str() == text)
    }

    /// A request with this method and head, and no body; `None` where there is no [`url`](Self::url).
    pub(crate) fn unpack(&self, method: Method) -> Option<Request> {
        let marks = Marks::read(&self.buffer);
        let mut request = Request::new(method, self.url()?);
        *request.version_mut() = self.version;
        if self.timeout.is_some() {
            // Not touched where none is set: that alone costs three allocations.
            *request.timeout_mut() = self.timeout;
        }
        let mut rest = self.part(marks.headers_at, marks.body_at);
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
            // Not `from_bytes`, which refuses a quotation mark that `from_static` lets pass.
            let name = HeaderName::from_lowercase(name).ok()?;
            request.headers_mut().try_append(name, value).ok()?;
        }
        Some(request)
    }

    fn part(&self, from: usize, to: usize) -> &[u8] {
        self.buffer.get(from..to).unwrap_or_default()
    }
}
