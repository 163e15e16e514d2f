//! The program of a mistake in docs/guide/safety.md.
use paceline::Builder;

pub(super) fn main() {
    let js = Builder::new().checks(true).build().unwrap();
    let heights = js.share_slice("heights", vec![0.0; 1000]);
    let grow = js
        .job("grow")
        .writes(&heights)
        .for_each(|height| *height += 1.0);
    let draw = js
        .job("draw")
        .reads(&heights)
        .schedule(|_, heights| println!("{heights:?}"));
    js.wait(js.combine([grow, draw]));
}
