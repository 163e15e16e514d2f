//! A frame as a PNG file.

use crate::failure::Failure;

/// A picture: red, green and blue of each point, row by row.
pub(super) struct Image {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) rgb: Vec<u8>,
}

impl Image {
    pub(super) fn to_png(&self) -> Result<Vec<u8>, Failure> {
        let mut file = Vec::new();
        self.encode(&mut file)
            .map_err(|error| Failure::failed(format!("cannot make the picture: {error}")))?;
        Ok(file)
    }

    fn encode(&self, file: &mut Vec<u8>) -> Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        writer.finish()
    }
}
