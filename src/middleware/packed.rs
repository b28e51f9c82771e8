//! A request's head, and a small body with it, in one buffer.
//!
//! Most copies are never used, and then what they cost is their pieces: each is allocated here and,
//! with many sends at once, freed on another core. One buffer is one piece.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Version};
use reqwest::{Request, Url};
use url::Position;

use super::origins::Origin;

/// What reqwest lets one see of a request, without its method, and without its body if that is not
/// small.
pub(crate) struct Packed {
    version: Version,
    timeout: Option<Duration>,
    /// The URL, the headers in their order, the body, and the [`Marks`].
    buffer: Vec<u8>,
}

/// Where in the buffer its parts are. At its end, since what a header takes is known only when it
/// is written; in the buffer, since few words are moved about at less cost than many.
struct Marks {
    scheme_ends: usize,
    host_at: usize,
    path_at: usize,
    headers_at: usize,
    body_at: usize,
    marks_at: usize,
}

impl Marks {
    const BYTES: usize = 6 * size_of::<usize>();

    fn append_to(&self, buffer: &mut Vec<u8>) {
        let marks = [
            self.scheme_ends,
            self.host_at,
            self.path_at,
            self.headers_at,
            self.body_at,
            self.marks_at,
        ];
        buffer.extend_from_slice(marks.map(usize::to_ne_bytes).as_flattened());
    }

    fn of(buffer: &[u8]) -> Self {
        let marks = buffer.last_chunk::<{ Self::BYTES }>();
        let mut marks = marks
            .into_iter()
            .flat_map(|marks| marks.chunks_exact(size_of::<usize>()));
        let mut next = || {
            let mark = marks.next().and_then(|mark| mark.try_into().ok());
            mark.map_or(0, usize::from_ne_bytes)
        };
        Self {
            scheme_ends: next(),
            host_at: next(),
            path_at: next(),
            headers_at: next(),
            body_at: next(),
            marks_at: next(),
        }
    }
}

/// What stands before a header: in one number the length of its value, that of its name in 16 bits
/// (`http` accepts no longer one), and whether the value is sensitive.
const FRAME: usize = size_of::<u64>();
const NAME_BITS: u32 = 16;

/// How much room a header is given before it is looked at.
const TYPICAL: usize = FRAME + 56;

impl Packed {
    /// Packs the head of `request` and this body.
    #[inline]
    pub(crate) fn new(request: &Request, body: &[u8]) -> Self {
        let (url, headers) = (request.url(), request.headers());
        let text = url.as_str().as_bytes();
        let guess = text.len() + headers.len() * TYPICAL + body.len() + Marks::BYTES;
        let mut buffer = Vec::with_capacity(guess);
        buffer.extend_from_slice(text);
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
        let authority = if url.has_host() {
            &url[Position::BeforeHost..Position::BeforePath]
        } else {
            ""
        };
        let path_at = url[..Position::BeforePath].len();
        let marks = Marks {
            scheme_ends: url.scheme().len(),
            host_at: path_at - authority.len(),
            path_at,
            headers_at: text.len(),
            body_at,
            marks_at: buffer.len(),
        };
        marks.append_to(&mut buffer);
        Self {
            version: request.version(),
            timeout: request.timeout().copied(),
            buffer,
        }
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        let marks = Marks::of(&self.buffer);
        let text = |from, to| std::str::from_utf8(self.part(from, to)).unwrap_or_default();
        let before_path = text(0, marks.path_at);
        if !before_path.contains('@') {
            return Origin(before_path.into());
        }
        let scheme = text(0, marks.scheme_ends);
        let host_and_port = text(marks.host_at, marks.path_at);
        Origin(format!("{scheme}://{host_and_port}").into())
    }

    /// The host without the port; `None` if there is none.
    pub(crate) fn host(&self) -> Option<&str> {
        let marks = Marks::of(&self.buffer);
        let host_and_port = std::str::from_utf8(self.part(marks.host_at, marks.path_at)).ok()?;
        let host = match host_and_port.rsplit_once(':') {
            // An IPv6 address is in brackets, and has colons of its own.
            Some((host, _)) if !host_and_port.ends_with(']') => host,
            _ => host_and_port,
        };
        (!host.is_empty()).then_some(host)
    }

    /// The body that was packed.
    pub(crate) fn body(&self) -> &[u8] {
        let marks = Marks::of(&self.buffer);
        self.part(marks.body_at, marks.marks_at)
    }

    /// The URL; `None` is for one whose text is not read back as the same. A host that has a label
    /// of a thousand letters beyond ASCII is such a one.
    pub(crate) fn url(&self) -> Option<Url> {
        let marks = Marks::of(&self.buffer);
        let text = std::str::from_utf8(self.part(0, marks.headers_at)).ok()?;
        Url::parse(text).ok().filter(|url| url.as_str() == text)
    }

    /// A request with this method and head, and no body; `None` where there is no [`url`](Self::url).
    pub(crate) fn unpack(&self, method: Method) -> Option<Request> {
        let mut request = Request::new(method, self.url()?);
        *request.version_mut() = self.version;
        if self.timeout.is_some() {
            // Not touched where none is set: that alone costs three allocations.
            *request.timeout_mut() = self.timeout;
        }
        let marks = Marks::of(&self.buffer);
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
