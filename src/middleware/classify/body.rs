//! What went wrong while the body of an answer was read.

use std::error::Error as StdError;
use std::io;

use super::timed_out;
use crate::middleware::error_chain::chain;
use crate::rule::TransportError;

/// Names what went wrong while the body of an answer was read, or `None` if all of it came and only
/// what it says is wrong, as under a corrupt `content-encoding`.
pub(in crate::middleware) fn classify_body(
    error: &(dyn StdError + 'static),
) -> Option<TransportError> {
    if chain(error).any(timed_out) {
        return Some(TransportError::Timeout);
    }
    chain(error).any(broke_off).then_some(TransportError::Body)
}

/// True if a body ended before it was whole: the connection broke off, or a decoder came to the end
/// of what the server sent and wanted more. The second is all that is seen if the end of the
/// connection is the end of the body.
fn broke_off(link: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = link.downcast_ref::<io::Error>() {
        // So say the decoders of gzip, brotli and zstd; the words are those of the one of deflate.
        error.kind() == io::ErrorKind::UnexpectedEof || error.to_string() == "unexpected BufError"
    } else {
        link.is::<hyper::Error>()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    /// What became of reading a body. The server sends `answer`, and then closes or says nothing
    /// more.
    async fn body(answer: &[u8], then_close: bool) -> Option<TransportError> {
        classify_body(&read(answer, then_close).await)
    }

    async fn read(answer: &[u8], then_close: bool) -> reqwest::Error {
        ask(answer, then_close).await.unwrap_err()
    }

    async fn ask(answer: &[u8], then_close: bool) -> reqwest::Result<bytes::Bytes> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let answer = answer.to_vec();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 4096]).unwrap();
            client.write_all(&answer).unwrap();
            if !then_close {
                let _ = client.read(&mut [0]);
            }
        });
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_millis(if then_close { 30_000 } else { 200 }));
        let answer = client.build().unwrap().get(url).send().await?;
        answer.bytes().await
    }

    /// A text in each coding that reqwest decodes.
    fn coded() -> [(&'static str, Vec<u8>); 4] {
        let text = [b'x'; 10_000];
        let level = flate2::Compression::none();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
        gzip.write_all(&text).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
        zlib.write_all(&text).unwrap();
        [
            ("gzip", gzip.finish().unwrap()),
            ("deflate", zlib.finish().unwrap()),
            ("br", brotli(&text)),
            ("zstd", zstd(&text)),
        ]
    }

    /// One uncompressed meta-block and the empty last one (RFC 7932, 9.2).
    fn brotli(text: &[u8]) -> Vec<u8> {
        let head = ((text.len() - 1) << 4) | (1 << 20);
        [&head.to_le_bytes()[..3], text, &[3]].concat()
    }

    /// One frame of one raw block (RFC 8878, 3.1.1).
    fn zstd(text: &[u8]) -> Vec<u8> {
        let size = u16::try_from(text.len() - 256).unwrap().to_le_bytes();
        let block = (text.len() << 3) | 1;
        let magic = [0x28, 0xb5, 0x2f, 0xfd, 0x60];
        [&magic, &size[..], &block.to_le_bytes()[..3], text].concat()
    }

    fn answer(coding: &str, header: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\n{header}\r\n");
        [head.as_bytes(), body].concat()
    }

    #[tokio::test]
    async fn a_body_shorter_than_its_length_is_broken_off() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart";
        assert_eq!(body(answer, true).await, Some(TransportError::Body));
    }

    #[tokio::test]
    async fn chunks_without_the_last_are_broken_off() {
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n";
        assert_eq!(body(answer, true).await, Some(TransportError::Body));
    }

    #[tokio::test]
    async fn a_chunk_whose_size_is_no_number_is_broken_off() {
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\npart\r\n";
        assert_eq!(body(answer, true).await, Some(TransportError::Body));
    }

    #[tokio::test]
    async fn a_body_that_stalls_times_out() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart";
        assert_eq!(body(answer, false).await, Some(TransportError::Timeout));
    }

    #[tokio::test]
    async fn a_compressed_body_shorter_than_its_length_is_broken_off() {
        for (coding, whole) in coded() {
            let length = format!("content-length: {}\r\n", whole.len());
            let answer = answer(coding, &length, &whole[..whole.len() / 2]);
            assert_eq!(
                body(&answer, true).await,
                Some(TransportError::Body),
                "{coding}"
            );
        }
    }

    #[tokio::test]
    async fn a_compressed_body_that_the_end_of_the_connection_cuts_off_is_broken_off() {
        for (coding, whole) in coded() {
            for length in [1, whole.len() / 2, whole.len() - 1] {
                let answer = answer(coding, "", &whole[..length]);
                assert_eq!(
                    body(&answer, true).await,
                    Some(TransportError::Body),
                    "{coding}, {length} bytes"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_compressed_body_that_the_end_of_the_connection_ends_is_whole() {
        for (coding, whole) in coded() {
            let answer = answer(coding, "", &whole);
            assert_eq!(
                ask(&answer, true).await.unwrap()[..],
                [b'x'; 10_000],
                "{coding}"
            );
        }
    }

    #[tokio::test]
    async fn a_compressed_body_that_reads_as_nonsense_is_no_transport_failure() {
        for (coding, _) in coded() {
            for header in ["", "content-length: 22\r\n"] {
                let answer = answer(coding, header, b"this was never encoded");
                assert_eq!(body(&answer, true).await, None, "{coding}, {header}");
            }
        }
    }
}
