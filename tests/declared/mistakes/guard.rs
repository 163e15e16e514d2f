//! The program of a mistake in docs/guide/safety.md.
use paceline::Builder;

pub(super) fn main() {
    let js = Builder::new().checks(true).build().unwrap();
    let heights = js.share_slice("heights", vec![0.0; 1000]);
    let now = heights.read();
    let grow = js
        .job("grow")
        .writes(&heights)
        .for_each(|height| *height += 1.0);
    js.wait(grow);
    println!("{:?}", now);
}
