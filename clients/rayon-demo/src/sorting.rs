//! Sorting: by joins, and by rayon's own sort.

use rayon::prelude::*;

use crate::numbers::number;

const ITEMS: u64 = 400_000;

fn items() -> Vec<u64> {
    (0..ITEMS).map(number).collect()
}

fn digest(sorted: &[u64]) -> u64 {
    assert!(sorted.is_sorted());
    sorted[sorted.len() / 3]
}

/// Two halves around a pivot, down to single items.
pub(crate) fn quicksort() -> u64 {
    fn sort(items: &mut [u64]) {
        if items.len() < 2 {
            return;
        }
        let last = items.len() - 1;
        items.swap(last / 2, last);
        let mut middle = 0;
        for place in 0..last {
            if items[place] <= items[last] {
                items.swap(place, middle);
                middle += 1;
            }
        }
        items.swap(middle, last);
        let (low, high) = items.split_at_mut(middle);
        rayon::join(|| sort(low), || sort(&mut high[1..]));
    }
    let mut items = items();
    sort(&mut items);
    digest(&items)
}

/// rayon's stable sort and its unstable one.
pub(crate) fn by_rayon() -> u64 {
    let mut items = items();
    items.par_sort_by_key(|&item| item >> 8);
    items.par_sort_unstable();
    digest(&items)
}
