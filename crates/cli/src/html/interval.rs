//! A change and its interval as a picture in a cell.

use maud::{Markup, html};

/// A change and its interval on a line that has a mark for no change; `ends` are those of all pictures of a
/// table. Of a change that is none of chance the point is full. `about` says the same in words.
pub(crate) fn interval(
    about: &str,
    (change, interval): (i64, [i64; 2]),
    (low, high): (i64, i64),
    is_full: bool,
) -> Markup {
    // Per mille of the picture, with a margin for the point.
    let place = |ns: i64| {
        let whole = i128::from(high).saturating_sub(i128::from(low)).max(1);
        let mille = 40 + 920 * (i128::from(ns) - i128::from(low)) / whole;
        format!("{}.{}%", mille / 10, mille % 10)
    };
    let [from, to] = interval.map(place);
    let class = if is_full { "point" } else { "point open" };
    html! {
        svg.interval role="img" aria-label=(about) {
            line.zero x1=(place(0)) x2=(place(0)) y1="0" y2="100%" {}
            line.spread x1=(from) x2=(to) y1="50%" y2="50%" {}
            circle class=(class) cx=(place(change)) cy="50%" r="4.5" {}
        }
    }
}
