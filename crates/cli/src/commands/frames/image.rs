//! A frame as a PNG file.

use workload::Picture;

use console::Failure;

/// The file's bytes.
pub(super) fn to_png(picture: &Picture) -> Result<Vec<u8>, Failure> {
    let mut file = Vec::new();
    encode(picture, &mut file)
        .map_err(|error| Failure::failed(format!("cannot make the picture: {error}")))?;
    Ok(file)
}

fn encode(picture: &Picture, file: &mut Vec<u8>) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(file, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.rgb)?;
    writer.finish()
}
