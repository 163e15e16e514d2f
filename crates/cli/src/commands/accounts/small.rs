//! Keeping the JSON of many waits small: 10 000 waits in 5 MB.
//!
//! What is a small part of its wait is summed up, in steps, until all of it fits: causes as one of kind
//! `rest`, shares as one of `others`; inversions are left out and counted. All sums stay exact. Where even
//! that is too long, only the worst waits keep their inversions.

use std::io::{self, Write};

use serde::Serialize;

use super::json::{CauseJson, InversionJson, ShareJson, WaitJson, WhoTable};

/// The bytes that waits and inversions may have, for up to as many waits, and for each one beyond.
const BYTES: usize = 4_800_000;
const WAITS: usize = 10_000;
/// What is smaller than one of so many parts of its wait, step by step.
const PARTS: [u64; 8] = [1000, 200, 100, 50, 20, 10, 5, 2];
/// From so many parts on it is better to leave out inversions, if waits have their share of the bytes: three
/// of four.
const COARSE: u64 = 20;

/// Sums up what is small until the rest is short enough. Returns the share below which that was done.
pub(super) fn shorten(
    waits: &mut [WaitJson],
    inversions: &mut Vec<InversionJson>,
    table: &mut WhoTable<'_>,
) -> f64 {
    let most = BYTES / WAITS * waits.len().max(WAITS);
    let mut share = 0.0;
    for parts in PARTS {
        if length(waits) + length(inversions) <= most {
            break;
        }
        let others = table.position(None);
        for wait in waits.iter_mut() {
            wait.shorten(parts, others);
        }
        inversions.retain(|inversion| {
            let wait = waits.get(inversion.wait);
            wait.is_some_and(|wait| !is_small(inversion.ns, wait.duration_ns, parts))
        });
        for inversion in inversions.iter_mut() {
            let whole = waits.get(inversion.wait).map_or(0, |wait| wait.duration_ns);
            sum_up(&mut inversion.by, whole, parts, others);
        }
        share = 1.0 / parts as f64;
        let of_waits = length(waits);
        if parts <= COARSE && of_waits * 4 <= most * 3 {
            keep_first(inversions, most - of_waits);
        }
    }
    let of_waits = length(waits);
    keep_first(inversions, most.saturating_sub(of_waits));
    share
}

/// Keeps as many inversions as fit, those of the worst waits.
fn keep_first(inversions: &mut Vec<InversionJson>, most: usize) {
    let mut bytes = 2;
    let mut fits = |inversion: &InversionJson| {
        bytes += length(inversion) + 1;
        bytes <= most
    };
    let kept = inversions.iter().take_while(|one| fits(one)).count();
    inversions.truncate(kept);
}

impl WaitJson {
    fn shorten(&mut self, parts: u64, others: usize) {
        let whole = self.duration_ns;
        let (mut rest, mut count) = (0, 0);
        self.causes.retain(|cause| {
            let is_rest = cause.count > 0;
            let is_small = is_rest || is_small(cause.ns, whole, parts);
            if is_small {
                rest += cause.ns;
                count += cause.count.max(1);
            }
            !is_small
        });
        for cause in &mut self.causes {
            sum_up(&mut cause.by, whole, parts, others);
        }
        if count > 0 {
            self.causes.push(CauseJson::rest(rest, count));
        }
    }
}

/// Makes one share of those that are small.
fn sum_up(by: &mut Vec<ShareJson>, whole: u64, parts: u64, others: usize) {
    let mut rest = 0;
    by.retain(|share| {
        let is_small = share.who == others || is_small(share.ns, whole, parts);
        rest += if is_small { share.ns } else { 0 };
        !is_small
    });
    if rest > 0 {
        by.push(ShareJson {
            who: others,
            ns: rest,
        });
    }
}

fn is_small(part: u64, whole: u64, parts: u64) -> bool {
    part.saturating_mul(parts) < whole
}

/// The bytes of something as JSON.
fn length(what: &(impl Serialize + ?Sized)) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Nothing is written, so nothing can fail.
    let _ = serde_json::to_writer(&mut count, what);
    count.0
}
