//! Where an origin is looked for.

use crate::middleware::origin::Origin;

/// An origin, and a number by which it is found fast.
pub(super) struct Key<'a> {
    pub(super) hash: u64,
    pub(super) origin: Origin<'a>,
}

impl<'a> Key<'a> {
    pub(super) fn of(origin: impl Into<Origin<'a>>) -> Self {
        let origin = origin.into();
        let hash = hash(origin.authority);
        Key { hash, origin }
    }
}

/// Spreads hosts and ports over 64 bits.
///
/// Not a keyed hash, which would cost as much as all the rest of a look-up: hosts that are chosen
/// to have one hash make one list as long as the number of origins is bounded, and no longer.
fn hash(authority: &[u8]) -> u64 {
    let mut rest = authority;
    let mut hash = authority.len() as u64;
    while let Some((word, after)) = rest.split_first_chunk() {
        hash = mixed(hash, u64::from_be_bytes(*word));
        rest = after;
    }
    let last = rest.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    mixed(hash, last)
}

fn mixed(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;

    #[track_caller]
    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    /// Sorts 1024 keys by the first six bits of their hashes, and finds none of the 64 heaps more
    /// than two and a half times as high as it would be in an even spread.
    #[track_caller]
    fn spreads(nth: impl Fn(usize) -> String) {
        let mut heights = [0; 64];
        for n in 0..1024 {
            heights[(Key::of(&url(&nth(n))).hash >> 58) as usize] += 1;
        }
        assert!(heights.iter().all(|height| *height <= 40), "{heights:?}");
    }

    #[test]
    fn hosts_that_differ_little_spread() {
        spreads(|n| format!("https://{n}.test/"));
        spreads(|n| format!("https://tenant-{n}.example.com/"));
        spreads(|n| format!("https://a-service-with-a-long-name.{n}.example.com/"));
        spreads(|n| format!("https://example.com.test{n}/"));
        spreads(|n| format!("http://10.0.{}.{}/", n / 256, n % 256));
    }

    #[test]
    fn ports_of_one_host_spread() {
        spreads(|n| format!("http://127.0.0.1:{}/", 20_000 + n));
        spreads(|n| format!("http://[::1]:{}/", 20_000 + n));
    }
}
