//! What the errors of TLS give away: those of rustls by their types and alerts, those of OpenSSL, and
//! of rustls below HTTP/2, by their words.

use std::error::Error as StdError;
#[cfg(feature = "rustls")]
use std::sync::LazyLock;

use super::finding::Finding;

#[cfg(feature = "rustls")]
pub(super) fn of_rustls(link: &(dyn StdError + 'static)) -> Option<Finding> {
    use rustls::AlertDescription as Alert;
    use rustls::Error;

    Some(match link.downcast_ref()? {
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => Finding::Certificate,
        Error::AlertReceived(alert) if CERTIFICATE_ALERTS.contains(alert) => Finding::Certificate,
        // These say nothing of what the peer supports.
        Error::AlertReceived(
            Alert::InternalError
            | Alert::UserCanceled
            | Alert::BadRecordMac
            | Alert::DecryptionFailed,
        ) => Finding::Tls,
        Error::AlertReceived(_)
        | Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerIncompatible(_)
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord
        | Error::NoApplicationProtocol => Finding::Incompatible,
        _ => Finding::Tls,
    })
}

#[cfg(not(feature = "rustls"))]
pub(super) fn of_rustls(_: &(dyn StdError + 'static)) -> Option<Finding> {
    None
}

#[cfg(feature = "rustls")]
const CERTIFICATE_ALERTS: [rustls::AlertDescription; 12] = {
    use rustls::AlertDescription as Alert;
    [
        Alert::NoCertificate,
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::UnknownCA,
        Alert::AccessDenied,
        Alert::CertificateUnobtainable,
        Alert::BadCertificateStatusResponse,
        Alert::BadCertificateHashValue,
        Alert::CertificateRequired,
    ]
};

/// Over HTTP/2 nothing is left of an alert but the words that rustls has for it.
#[cfg(feature = "rustls")]
pub(super) fn is_certificate_alert_of_rustls(words: &str) -> bool {
    static WORDS: LazyLock<[String; 12]> = LazyLock::new(|| {
        CERTIFICATE_ALERTS.map(|alert| rustls::Error::AlertReceived(alert).to_string())
    });
    WORDS.iter().any(|alert| alert == words)
}

#[cfg(not(feature = "rustls"))]
pub(super) fn is_certificate_alert_of_rustls(_: &str) -> bool {
    false
}

/// What OpenSSL says of a certificate: of the peer's, and in alerts of the peer about ours. Before
/// its version 3.2 the words of an alert begin with "sslv3" or "tlsv1", since then some begin with
/// "ssl/tls".
pub(super) fn is_certificate_error_of_openssl(words: &str) -> bool {
    const REASONS: [&str; 12] = [
        ":certificate verify failed",
        " alert no certificate",
        " alert bad certificate",
        " alert unsupported certificate",
        " alert certificate revoked",
        " alert certificate expired",
        " alert certificate unknown",
        " alert unknown ca",
        " alert access denied",
        " alert certificate required",
        " bad certificate status response",
        " bad certificate hash value",
    ];
    words.starts_with("error:")
        && words.contains(":SSL routines:")
        && REASONS.iter().any(|reason| words.contains(reason))
}

#[cfg(test)]
mod tests {
    use super::super::finding::of_words;
    use super::*;

    /// What OpenSSL 3.0 says (`openssl errstr`, with what the crate `openssl` puts around it).
    fn openssl(reason: &str) -> String {
        format!("error:0A000086:SSL routines:ssl3_read_bytes:{reason}:ssl/record/x.c:1605:")
    }

    #[test]
    fn what_openssl_says_of_certificates_is_about_certificates() {
        for reason in [
            "certificate verify failed",
            "sslv3 alert no certificate",
            "sslv3 alert bad certificate",
            "ssl/tls alert bad certificate",
            "sslv3 alert unsupported certificate",
            "sslv3 alert certificate revoked",
            "sslv3 alert certificate expired",
            "ssl/tls alert certificate expired",
            "sslv3 alert certificate unknown",
            "tlsv1 alert unknown ca",
            "tlsv1 alert access denied",
            "tlsv1 bad certificate status response",
            "tlsv1 bad certificate hash value",
            "tlsv13 alert certificate required",
        ] {
            let words = openssl(reason);
            assert!(of_words(&words) == Some(Finding::Certificate), "{words}");
            let words = format!("{words} (unable to get local issuer certificate)");
            assert!(of_words(&words) == Some(Finding::Certificate), "{words}");
        }
    }

    #[test]
    fn what_openssl_says_of_other_things_is_not() {
        for reason in [
            "wrong version number",
            "sslv3 alert bad record mac",
            "sslv3 alert handshake failure",
            "tlsv1 alert internal error",
            "tlsv1 alert decrypt error",
            "decryption failed or bad record mac",
            "unexpected eof while reading",
        ] {
            let words = openssl(reason);
            assert!(of_words(&words).is_none(), "{words}");
        }
        assert!(of_words("certificate verify failed").is_none());
        assert!(of_words("connection error received: (b\"error:SSL routines\")").is_none());
    }
}
