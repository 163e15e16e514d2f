//! Goal: each item is handed out once, results keep their order and are dropped once, whatever panics.
//! Method: loops over numbered items, against the same loops on one thread; results that count their drops.

use std::sync::Arc;

use super::*;
use crate::{Builder, JobSystem};

/// A job system with workers, so that loops are divided.
fn divided() -> JobSystem {
    Builder::small().workers(2).build().expect("there is room")
}

fn len() -> usize {
    if cfg!(miri) { 70 } else { 20_000 }
}

/// Goal: as above. Method: every kind of data, alone and side by side.
#[test]
fn each_item_is_handed_out_once() {
    let js = divided();
    for len in [0, 7, len()] {
        let numbers: Vec<usize> = (0..len).collect();
        let mut counts = vec![0_u8; len];
        js.over(&mut counts)
            .grain(Grain::Items(1))
            .for_each(|count| *count += 1);
        js.over((0..len, &numbers[..], &mut counts[..]))
            .for_each(|(index, number, count)| {
                assert_eq!(index, *number);
                *count += 1;
            });
        let both = js.over((&numbers, &mut counts)).chunks(3);
        both.for_each(|(numbers, counts)| {
            assert_eq!(numbers.len(), counts.len());
            assert!(numbers.len() == 3 || numbers.last() == Some(&(len - 1)));
            for count in counts {
                *count += 1;
            }
        });
        assert!(counts.iter().all(|&count| count == 3), "{len}");
        let doubled = js.over(&numbers).map(|number| 2 * number);
        assert!(
            doubled
                .iter()
                .enumerate()
                .all(|(index, &twice)| twice == 2 * index)
        );
        assert_eq!(doubled.len(), len);
    }
    let mut pair = [1, 2];
    js.over(&mut pair).for_each(|number| *number *= 10);
    assert_eq!(js.over(&pair).map(|number| *number), [10, 20]);
}

/// Goal: a loop has the name that it was given, with the line of that call, or the name and the line of
/// `over`; each of its kinds, and none has another label. Method: loops of each kind, and all labels.
#[test]
fn loops_have_names_and_lines() {
    let js = divided();
    let first = line!() + 1;
    let _ = js.over(0..3).named("steer").chunks(2).map(|part| part);
    let _ = js
        .over(0..3)
        .named(format!("sum of {}", 3))
        .reduce(|n| n, usize::max);
    js.over(0..3).for_each(|_| ());
    let _ = js.over(0..3).find(|_| false);
    js.enter(|cx| cx.over(0..3).any(|_| false));
    js.parallel_for(0..3, Grain::Auto, |_, _| ());
    let labels = js.labels();
    let labels: Vec<_> = labels
        .iter()
        .map(|label| (label.name, label.site.line() - first))
        .collect();
    let all = [
        ("steer", 0),
        ("sum of 3", 3),
        ("over", 5),
        ("over", 6),
        ("over", 7),
        ("parallel_for", 8),
    ];
    assert_eq!(labels, all);
}

/// Goal: folds give the same result, to the bit, with any number of workers, and keep the order. Method: sums
/// of floating-point numbers of very different sizes, and strings.
#[test]
fn folds_are_the_same_everywhere_long() {
    let numbers: Vec<f64> = (0..len()).map(|n| 1.0 / (1.0 + n as f64).powi(3)).collect();
    let sums = [0, 1, 2].map(|workers| {
        let js = Builder::small().workers(workers).build().unwrap();
        let folded = js
            .over(&numbers)
            .fold(|| 0.0, |sum, n| sum + n, |a, b| a + b);
        let reduced = js.over(&numbers).reduce(|n| *n, |a, b| a + b).unwrap();
        [folded.to_bits(), reduced.to_bits()]
    });
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    let js = divided();
    let text = js
        .over(0..300)
        .fold(String::new, |s, n| s + &format!("{n},"), |a, b| a + &b);
    let expected: String = (0..300).map(|n| format!("{n},")).collect();
    assert_eq!(text, expected);
    assert_eq!(js.over(0..0).reduce(|n| n, usize::max), None);
    assert_eq!(js.over(0..0).fold(|| 5, |_, _| 6, |_, _| 7), 5);
}

/// Goal: a search finds the first item, or nothing. Method: one, several and no item that fits.
#[test]
fn searches_find_the_first_long() {
    let js = divided();
    let len = len();
    for wanted in [0, 1, len / 2, len - 1] {
        let found = js
            .over(0..len)
            .grain(Grain::Items(1))
            .find(|&n| n >= wanted);
        assert_eq!(found, Some(wanted));
        assert!(js.over(0..len).any(|n| n == wanted));
    }
    assert_eq!(js.over(0..len).find(|&n| n > len), None);
    assert!(!js.over(0..len).any(|n| n > len));
    let mut items = vec![1, 5, 9];
    *js.over(&mut items).find(|item| **item > 3).unwrap() = 0;
    assert_eq!(items, [1, 0, 9]);
}

/// Goal: results are dropped once, also if the loop panics in the middle. Method: results that are counted.
#[test]
fn results_are_dropped_once() {
    let js = divided();
    let alive = Arc::new(());
    let len = len();
    for panics_at in [Some(0), Some(len / 3), None] {
        let counted = alive.clone();
        let make = move |n| {
            assert!(Some(n) != panics_at, "the item that panics");
            counted.clone()
        };
        let all = js
            .job("map")
            .run(move |cx| cx.over(0..len).grain(Grain::Items(1)).map(make));
        match all.try_wait() {
            Ok(results) => {
                assert_eq!((panics_at, results.len()), (None, len));
                assert_eq!(Arc::strong_count(&alive), 1 + len);
            }
            Err(_) => assert!(panics_at.is_some()),
        }
        assert_eq!(Arc::strong_count(&alive), 1, "{panics_at:?}");
    }
}

/// Goal: mistakes are told. Method: slices of different lengths, chunks of nothing, tiles of too few
/// points, a row of another tile.
#[test]
fn mistakes_are_told() {
    let js = Builder::small().workers(0).build().unwrap();
    let job = js
        .job("slices")
        .run(|cx| cx.over((&[1, 2], 0..3)).for_each(|_| ()));
    let said = job.try_wait().unwrap_err().to_string();
    assert!(said.contains("different lengths: [2, 3]"), "{said}");
    let job = js
        .job("chunks")
        .run(|cx| cx.over(0..3).chunks(0).for_each(|_| ()));
    let said = job.try_wait().unwrap_err().to_string();
    assert!(said.ends_with("chunks of no items"), "{said}");
    let tiles = Tiles {
        width: 3,
        height: 3,
        size: (2, 2),
    };
    let job = js.job("short").run(move |_| _ = tiles.of(&mut [0; 8]));
    let said = job.try_wait().unwrap_err().to_string();
    assert!(
        said.ends_with("a plane of 3 × 3 points, and 8 points"),
        "{said}"
    );
    let job = js.job("row").run(move |cx| {
        cx.over(tiles.of(&mut [0; 9]))
            .for_each(|mut tile| tile.row(2).fill(1));
    });
    let said = job.try_wait().unwrap_err().to_string();
    assert!(said.ends_with("row 2 of a tile of rows 0..2"), "{said}");
}

/// Goal: each point of a plane is in one tile, and tiles lead to their own points and to no others.
/// Method: planes and tiles of many sizes, edges smaller and zero sizes among them; each
/// tile adds to its points, which know their places.
#[test]
fn each_point_is_in_one_tile() {
    let js = divided();
    let sizes: &[usize] = if cfg!(miri) { &[0, 5] } else { &[0, 1, 5, 64] };
    for &width in sizes {
        for &height in sizes {
            for size in [(0, 0), (2, 3), (64, 1), (usize::MAX, usize::MAX)] {
                let tiles = Tiles {
                    width,
                    height,
                    size,
                };
                let mut plane: Vec<(usize, usize, u8)> = (0..width * height)
                    .map(|at| (at % width, at / width, 0))
                    .collect();
                let over = js.over(tiles.of(&mut plane)).grain(Grain::Items(1));
                over.for_each(|mut tile| {
                    let (x, y) = (tile.x.clone(), tile.y.clone());
                    let (columns, lines) = (x.end - x.start, y.end - y.start);
                    assert!(columns > 0 && lines > 0);
                    // What a program does to these changes nothing.
                    (tile.x, tile.y) = (0..usize::MAX, 0..usize::MAX);
                    let rows: Vec<_> = tile.rows().collect();
                    assert_eq!(rows.len(), lines);
                    for (at, row) in rows {
                        assert_eq!(row.len(), columns);
                        for (point, x) in row.iter_mut().zip(x.clone()) {
                            assert_eq!((point.0, point.1), (x, at));
                            point.2 += 1;
                        }
                    }
                    tile.row(y.start).iter_mut().for_each(|point| point.2 += 1);
                });
                let once = plane.iter().all(|point| (1..=2).contains(&point.2));
                assert!(once, "{tiles:?}");
                let first_rows = plane.iter().filter(|point| point.2 == 2).count();
                let bands = height.div_ceil(size.1.max(1));
                assert_eq!(first_rows, bands * width, "{tiles:?}");
            }
        }
    }
}
