//! Recursion down to the leaves: `join` costs a few nanoseconds, so there is no cut-off to tune.
#![forbid(unsafe_code)]
use paceline::{Context, JobSystem};

fn sort(cx: &Context<'_>, values: &mut [u32]) {
    if values.len() < 2 {
        return;
    }
    let last = values.len() - 1;
    let mut middle = 0;
    for i in 0..last {
        if values[i] < values[last] {
            values.swap(i, middle);
            middle += 1;
        }
    }
    values.swap(middle, last);
    let (low, high) = values.split_at_mut(middle);
    cx.join(|cx| sort(cx, low), |cx| sort(cx, &mut high[1..]));
}

fn main() {
    let mut values: Vec<u32> = (0..100_000u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect();
    JobSystem::new().enter(|cx| sort(cx, &mut values));
    assert!(values.is_sorted());
    println!(
        "{} values sorted, the smallest is {}",
        values.len(),
        values[0]
    );
}
