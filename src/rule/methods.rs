use http::Method;

/// The methods for which something may be retried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Methods {
    /// No method.
    #[default]
    Never,
    /// What the caller knows to be idempotent (RFC 9110, 9.2.2).
    Idempotent,
    /// These methods and no others.
    Listed(Vec<Method>),
    /// Every method.
    Any,
}

impl Methods {
    /// Whether `method` is among them, where `idempotent` says what the caller knows of the request.
    pub fn allows(&self, method: &Method, idempotent: bool) -> bool {
        match self {
            Methods::Never => false,
            Methods::Idempotent => idempotent,
            Methods::Listed(listed) => listed.contains(method),
            Methods::Any => true,
        }
    }
}
