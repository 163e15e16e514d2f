//! `--record-costs`: how long the bodies of each label took, as a file for simulated runs.
//!
//! Durations are wall-clock times around bodies: a body that was preempted counts with its waiting,
//! which is why p50 is the number to trust and the head of the file says whether the machine was
//! quiet. A parallel job's body is called with several pieces at a time; the pieces of one call
//! count as equally long.
//!
//! While running, a label's durations are counted in buckets an eighth of their size wide, of which
//! the file shows sums (powers of two) and p50 and p99 are read to within 6 %.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use console::Failure;
use event::Nanos;
use measure::Machine;
use serde::{Deserialize, Serialize};

/// Buckets per power of two, as a power of two itself.
const SUB_BITS: u32 = 3;
/// Durations from 2^40 ns on (18 minutes) share the last bucket.
pub(in crate::commands) const LOG2_MAX: u32 = 40;
/// The version of the file's format.
pub(in crate::commands) const FORMAT: u32 = 1;
const BUCKETS: usize = ((LOG2_MAX - SUB_BITS + 1) << SUB_BITS) as usize;

/// The durations of all labels.
pub(super) struct RecordedCosts {
    labels: Vec<(&'static str, Histogram)>,
}

/// The run in which they were measured, for the head of the file.
pub(super) struct CostsHead<'a> {
    pub(super) scene: &'static str,
    pub(super) graph: Option<&'a str>,
    pub(super) machine: &'a Machine,
    pub(super) workers: usize,
    pub(super) frames: u64,
    pub(super) quiet: bool,
}

/// The durations of one label. Counted by several threads at once; all accesses are Relaxed,
/// because the counts are read after the job system has been stopped.
struct Histogram {
    buckets: [AtomicU32; BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

/// The file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::commands) struct File {
    /// Of this format: [`FORMAT`].
    pub(in crate::commands) format: u32,
    pub(in crate::commands) scene: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) graph: Option<String>,
    pub(in crate::commands) machine: String,
    workers: usize,
    frames: u64,
    pub(in crate::commands) quiet: bool,
    pub(in crate::commands) label: Vec<Entry>,
}

/// One label of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::commands) struct Entry {
    pub(in crate::commands) name: String,
    count: u64,
    pub(in crate::commands) mean_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    pub(in crate::commands) max_ns: u64,
    /// The power of two at which the first bucket of `counts` begins.
    pub(in crate::commands) first_log2: u32,
    pub(in crate::commands) counts: Vec<u64>,
}

impl RecordedCosts {
    pub(super) fn new(labels: &[&'static str]) -> RecordedCosts {
        RecordedCosts {
            labels: labels
                .iter()
                .map(|&label| (label, Histogram::new()))
                .collect(),
        }
    }

    /// A call of this label's body has run `items` of its pieces in this time.
    pub(super) fn add(&self, label: u32, items: u64, took: Nanos) {
        self.labels[label as usize].1.add(items, took);
    }

    /// The file's text.
    pub(super) fn to_toml(&self, head: &CostsHead<'_>) -> Result<String, Failure> {
        let entries = self
            .labels
            .iter()
            .filter_map(|(name, histogram)| histogram.entry(name));
        let file = File {
            format: FORMAT,
            scene: head.scene.to_owned(),
            graph: head.graph.map(str::to_owned),
            machine: head.machine.to_string(),
            workers: head.workers,
            frames: head.frames,
            quiet: head.quiet,
            label: entries.collect(),
        };
        let text = toml::to_string(&file)
            .map_err(|error| Failure::failed(format!("cannot write TOML: {error}")))?;
        Ok(format!(
            "# How long the bodies of each label took, in nanoseconds. Entry n of counts (from 0): bodies\n\
             # that took 2^(first_log2+n) or more and less than twice that.\n\
             # Written by `paceline frames --record-costs`.\n{text}"
        ))
    }
}

impl Histogram {
    fn new() -> Histogram {
        Histogram {
            buckets: std::array::from_fn(|_| AtomicU32::new(0)),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }

    fn add(&self, items: u64, took: Nanos) {
        let each = took.0 / items.max(1);
        let bucket = &self.buckets[bucket_of(each)];
        bucket.fetch_add(items as u32, Ordering::Relaxed);
        self.sum.fetch_add(took.0, Ordering::Relaxed);
        self.max.fetch_max(each, Ordering::Relaxed);
    }

    /// `None` if nothing was counted.
    fn entry(&self, name: &str) -> Option<Entry> {
        let load = |bucket: &AtomicU32| u64::from(bucket.load(Ordering::Relaxed));
        let buckets: Vec<u64> = self.buckets.iter().map(load).collect();
        let count: u64 = buckets.iter().sum();
        let mut counts = vec![0; LOG2_MAX as usize + 1];
        for (bucket, n) in buckets.iter().enumerate() {
            counts[begin_of(bucket).max(1).ilog2() as usize] += n;
        }
        let first = counts.iter().position(|&n| n > 0)?;
        let last = counts.iter().rposition(|&n| n > 0)?;
        let max_ns = self.max.load(Ordering::Relaxed);
        Some(Entry {
            name: name.to_owned(),
            count,
            mean_ns: self.sum.load(Ordering::Relaxed) / count,
            p50_ns: quantile(&buckets, count, 0.50).min(max_ns),
            p99_ns: quantile(&buckets, count, 0.99).min(max_ns),
            max_ns,
            first_log2: first as u32,
            counts: counts[first..=last].to_vec(),
        })
    }
}

/// Which bucket a duration belongs to: exact below 8 ns, then eight to a power of two.
fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.min((1 << LOG2_MAX) - 1);
    let log2 = nanos.max(1).ilog2();
    match log2.checked_sub(SUB_BITS) {
        None => nanos as usize,
        Some(shift) => {
            (((shift + 1) << SUB_BITS) as u64 + (nanos >> shift) - (1 << SUB_BITS)) as usize
        }
    }
}

/// The shortest duration of a bucket.
fn begin_of(bucket: usize) -> u64 {
    let (group, sub) = (bucket as u64 >> SUB_BITS, bucket as u64 % (1 << SUB_BITS));
    match group {
        0 => sub,
        _ => (sub + (1 << SUB_BITS)) << (group - 1),
    }
}

/// The duration that this fraction of all stays below, taken from the middle of its bucket.
fn quantile(buckets: &[u64], count: u64, fraction: f64) -> u64 {
    let rank = ((fraction * count as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let bucket = buckets.iter().position(|n| {
        seen += n;
        seen >= rank
    });
    bucket.map_or(0, |bucket| (begin_of(bucket) + begin_of(bucket + 1)) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: buckets follow each other without gaps and hold their own durations. Method: every boundary, and
    /// durations between.
    #[test]
    fn buckets_have_no_gaps() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(begin_of(bucket)), bucket);
            assert_eq!(bucket_of(begin_of(bucket + 1) - 1), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    /// Goal: the numbers of a label describe its durations. Method: ninety-eight short bodies, a call of four
    /// pieces, and a label that was never run.
    #[test]
    fn a_label_is_described() {
        let costs = RecordedCosts::new(&["a", "b"]);
        (0..96).for_each(|_| costs.add(0, 1, Nanos(500)));
        costs.add(0, 4, Nanos(40_000));
        let entry = costs.labels[0].1.entry("a").unwrap();
        assert_eq!(
            (entry.count, entry.mean_ns, entry.max_ns),
            (100, 880, 10_000)
        );
        assert!((480..=530).contains(&entry.p50_ns), "{entry:?}");
        assert!((9_400..=10_000).contains(&entry.p99_ns), "{entry:?}");
        assert_eq!(
            (entry.first_log2, &entry.counts[..]),
            (8, &[96, 0, 0, 0, 0, 4][..])
        );
        assert_eq!(costs.labels[1].1.entry("b"), None);
    }

    /// Goal: the file is TOML that reads back. Method: labels with characters that need quoting.
    #[test]
    fn the_file_reads_back() {
        let costs = RecordedCosts::new(&["say \"hi\" = [1]"]);
        costs.add(0, 1, Nanos(1_000));
        let head = CostsHead {
            scene: "graph",
            graph: Some("g"),
            machine: &Machine::read(),
            workers: 3,
            frames: 1,
            quiet: false,
        };
        let file: File = toml::from_str(&costs.to_toml(&head).unwrap()).unwrap();
        assert_eq!((file.format, file.workers, file.quiet), (1, 3, false));
        assert_eq!(file.label[0].name, "say \"hi\" = [1]");
        assert_eq!(file.label[0].counts, [1]);
    }
}
