//! The program of a mistake in docs/guide/safety.md.
use paceline::Builder;

pub(super) fn main() {
    let js = Builder::new().checks(true).build().unwrap();
    let heights = js.share_slice("heights", vec![0.0; 1000]);
    let theirs = heights.clone();
    let grow = js.job("grow").writes(&heights).schedule(move |cx, _| {
        let half = cx.job("half").writes(theirs.part(0..500));
        cx.wait(half.for_each(|height| *height += 1.0));
    });
    js.wait(grow);
}
