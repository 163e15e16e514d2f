//! What a page holds that is no markup: packed data, and the hashes by which a browser knows our style and
//! script.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use console::Failure;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Data as JSON, packed with gzip, in base64: letters, digits and three signs, whatever is in it. So no name
/// of a trace can end the element that holds it, or mean anything to a browser.
///
/// # Errors
/// If the data is none that JSON can hold.
pub(super) fn packed(data: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_vec(data).map_err(Failure::failed)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(&json).and_then(|()| encoder.finish());
    Ok(STANDARD.encode(written.map_err(Failure::failed)?))
}

/// A text's hash, as a Content-Security-Policy names it.
pub(super) fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    /// Goal: nothing that a trace may name can leave the element, and all of it comes back. Method: ends of
    /// elements, comments, quotes, and line ends that are none in JSON.
    #[test]
    fn packed_data_is_inert() {
        let names = [
            "</script><script>x()</script>",
            "<!--",
            "]]>",
            "\u{2028}\u{2029}\"'&\0",
            "日本",
        ];
        let text = packed(&names).unwrap();
        let is_inert = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        assert!(text.bytes().all(is_inert), "{text}");
        let mut json = String::new();
        let bytes = STANDARD.decode(&text).unwrap();
        GzDecoder::new(&bytes[..])
            .read_to_string(&mut json)
            .unwrap();
        let back: Vec<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, names);
        assert_eq!(packed(&names).unwrap(), text, "the same bytes each time");
    }

    /// Goal: browsers find the same hash. Method: the well-known one of an empty text.
    #[test]
    fn hashes_are_those_of_browsers() {
        assert_eq!(
            hash(""),
            "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
        );
    }
}
