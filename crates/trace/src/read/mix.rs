//! Hashes for caches: they take few instructions, and the results are right even if a hash is bad.

/// The first and the last eight bytes, which overlap in texts of less than 16 bytes; of less than eight, all.
/// With the length they identify texts of up to 16 bytes.
#[inline]
pub(super) fn of_ends(bytes: &[u8]) -> [u64; 2] {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return [u64::from_le_bytes(*first), u64::from_le_bytes(*last)];
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return [
            u32::from_le_bytes(*first).into(),
            u32::from_le_bytes(*last).into(),
        ];
    }
    let byte = |at: usize| bytes.get(at).copied().map_or(0, u64::from);
    [byte(0) | byte(1) << 8 | byte(2) << 16, 0]
}

/// Bits for a cache, of which the low ones are good. Texts with equal bits on purpose make the cache useless,
/// and nothing worse.
#[inline]
pub(super) fn mix([begin, end]: [u64; 2], more: u64) -> u64 {
    // 2^64 over the golden ratio, as Knuth has it.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (begin ^ more.rotate_left(32)).wrapping_mul(SPREAD) ^ end.rotate_left(29);
    // Products spread upwards only, and names often differ in their last byte, which is on top. So the top
    // bits are moved down, of both ends to places of their own.
    (mixed ^ mixed >> 32).wrapping_mul(SPREAD) >> 40
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names that differ in one byte mostly have places of their own in a cache. Method: for each
    /// byte of names of every length, all values of it that are letters or digits, in a cache of 4096.
    #[test]
    fn similar_names_are_spread() {
        for length in 1..=16 {
            for at in 0..length {
                let mut name = b"swapper/swapper/"[..length].to_vec();
                let places = (b'0'..=b'z').map(|byte| {
                    name[at] = byte;
                    mix(of_ends(&name), name.len() as u64) % 4096
                });
                let places: std::collections::BTreeSet<u64> = places.collect();
                assert!(places.len() > 60, "{length} {at}: {}", places.len());
            }
        }
    }

    /// Goal: up to 16 bytes, ends and length identify a text. Method: every byte of every such text changed.
    #[test]
    fn ends_tell_texts_apart() {
        let text: Vec<u8> = (1..=16).collect();
        for length in 0..=16 {
            for at in 0..length {
                let mut other = text[..length].to_vec();
                other[at] ^= 0x80;
                assert_ne!(of_ends(&text[..length]), of_ends(&other), "{length} {at}");
            }
        }
    }
}
