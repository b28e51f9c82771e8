use http::Method;

/// The methods for which something may be retried.
///
/// The default is [`Methods::Never`].
///
/// # Examples
///
/// ```
/// use http::Method;
/// use reqwest_retry_rules::Methods;
///
/// assert!(!Methods::Never.allows(&Method::GET, true));
/// assert!(Methods::Idempotent.allows(&Method::GET, true));
/// assert!(!Methods::Idempotent.allows(&Method::POST, false));
/// assert!(Methods::Any.allows(&Method::POST, false));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Methods {
    /// No method: what falls under it is not retryable.
    #[default]
    Never,
    /// Every request for which sending it twice does no more than sending it once, as the caller
    /// states in [`Attempt::idempotent`](crate::Attempt::idempotent). Unless the caller says
    /// otherwise, these are GET, HEAD, OPTIONS, TRACE, PUT and DELETE (RFC 9110, 9.2.2), and QUERY.
    Idempotent,
    /// These methods and no others, whether idempotent or not. They are case-sensitive (RFC 9110,
    /// 9.1): `get` is not `GET`, and [`RetryRule::validate`](crate::RetryRule::validate) says so.
    Listed(Vec<Method>),
    /// Every method: for what says that the request was not acted on, such as a status 429.
    Any,
}

impl Methods {
    /// True if a request of `method` is among them; `idempotent` says whether it may be sent
    /// twice.
    ///
    /// Only [`Methods::Idempotent`] looks at `idempotent`, which is the caller's word: a POST
    /// that is known to be safe to repeat is idempotent, a PUT to a careless service is not.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::Method;
    /// use reqwest_retry_rules::Methods;
    ///
    /// let listed = Methods::Listed(vec![Method::GET, Method::PUT]);
    /// assert!(listed.allows(&Method::PUT, false));
    /// assert!(!listed.allows(&Method::DELETE, true));
    /// assert!(Methods::Idempotent.allows(&Method::POST, true));
    /// ```
    #[inline]
    pub fn allows(&self, method: &Method, idempotent: bool) -> bool {
        match self {
            Methods::Never => false,
            Methods::Idempotent => idempotent,
            Methods::Listed(listed) => listed.contains(method),
            Methods::Any => true,
        }
    }
}

/// True if a request of `method` may be sent twice without doing more than once: those of RFC 9110,
/// 9.2.2, and QUERY.
///
/// The list is our own: `http` counts QUERY in some versions and not in others, and the version in
/// a lock file should not decide what is sent twice.
pub(crate) fn is_idempotent(method: &Method) -> bool {
    matches!(
        method.as_str(),
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE" | "QUERY"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_methods_and_query_are_idempotent() {
        let is = |name: &str| is_idempotent(&Method::from_bytes(name.as_bytes()).unwrap());
        for name in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"] {
            assert!(is(name), "{name}");
        }
        for name in ["POST", "PATCH", "CONNECT", "PROPFIND", "get", "query", "Q"] {
            assert!(!is(name), "{name}");
        }
    }
}
