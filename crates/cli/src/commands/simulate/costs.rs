//! Durations of bodies in a simulated run: drawn from what `frames --record-costs` has measured.
//!
//! The duration of the n-th body of a label in a frame is a function of (seed, frame, label, n), whichever
//! job it is. So the work of a frame is the same under every policy and with every number of workers; each
//! job's share of it depends on the order in which bodies begin.
//!
//! A duration is drawn from the label's histogram, uniformly within a bucket, then scaled so that the mean is
//! the measured one (buckets are powers of two), but never longer than the longest that was measured, which
//! takes some per cent off the mean of labels with few long bodies among many short ones.

use std::path::Path;

use event::{Nanos, Random, mix};

use crate::commands::frames::costs::{Entry, FORMAT, File, LOG2_MAX};

/// The measured durations of all labels, and the seed.
#[derive(Clone, Debug)]
pub(super) struct DrawnCosts {
    seed: u64,
    label: Vec<Entry>,
    /// Where they were measured.
    pub(super) machine: String,
    /// Whether the machine was quiet meanwhile.
    pub(super) quiet: bool,
}

impl DrawnCosts {
    /// Reads a file that was recorded with this scene.
    pub(super) fn read(path: &Path, scene: &str, seed: u64) -> Result<DrawnCosts, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{shown}: cannot be read: {error}"))?;
        DrawnCosts::parse(&text, scene, seed).map_err(|what| format!("{shown}: {what}"))
    }

    fn parse(text: &str, scene: &str, seed: u64) -> Result<DrawnCosts, String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let what = error.message().replace('\n', " ");
            format!("{what}; record one with `paceline frames --record-costs`")
        })?;
        if file.format != FORMAT {
            let format = file.format;
            return Err(format!("format {format} is not known: record it again"));
        }
        if file.scene != scene {
            return Err(format!(
                "it was recorded with scene {}, and this is {scene}",
                file.scene
            ));
        }
        for entry in &file.label {
            let end = u64::from(entry.first_log2) + entry.counts.len() as u64;
            let sum = entry
                .counts
                .iter()
                .try_fold(0u64, |sum, &n| sum.checked_add(n));
            let is_empty = sum.is_none_or(|sum| sum == 0 || sum > 1 << 40);
            if end > u64::from(LOG2_MAX) + 1 || is_empty || entry.max_ns >> LOG2_MAX > 1 {
                return Err(format!("label {:?}: its counts are damaged", entry.name));
            }
        }
        Ok(DrawnCosts {
            seed,
            label: file.label,
            machine: file.machine,
            quiet: file.quiet,
        })
    }

    /// The place of each of these labels in the file.
    pub(super) fn places(&self, labels: &[impl AsRef<str>]) -> Result<Vec<usize>, String> {
        let place = |label: &_| {
            let label = AsRef::<str>::as_ref(label);
            let found = self.label.iter().position(|entry| entry.name == label);
            found.ok_or_else(|| {
                format!("costs: nothing was recorded for {label:?}: record it with the same scene")
            })
        };
        labels.iter().map(place).collect()
    }

    /// The duration of the n-th body of a label in a frame.
    pub(super) fn draw(&self, frame: u64, place: usize, n: u64) -> Nanos {
        let entry = &self.label[place];
        let stream = mix(mix(self.seed ^ frame) ^ (place as u64) << 40 ^ n);
        draw(entry, &mut Random::new(stream))
    }
}

fn draw(entry: &Entry, random: &mut Random) -> Nanos {
    let total: u64 = entry.counts.iter().sum();
    let mut rank = random.below(total);
    // The bucket that is drawn from, and the sum over all bodies of twice the middle of their buckets.
    let (mut drawn, mut twice) = (None, 0u128);
    for (place, &count) in entry.counts.iter().enumerate() {
        let first = 1u64 << (entry.first_log2 + place as u32);
        // The last bucket is as full as the longest body says.
        let last = (2 * first - 1).min(entry.max_ns.max(first));
        twice += u128::from(count) * u128::from(first + last);
        match drawn {
            None if rank < count => drawn = Some((first, last)),
            None => rank -= count,
            Some(_) => {}
        }
    }
    let (first, last) = drawn.expect("the rank is less than the sum of all counts");
    let length = u128::from(random.within(first, last));
    let scaled = length * u128::from(entry.mean_ns) * 2 * u128::from(total) / twice;
    Nanos((scaled as u64).min(entry.max_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "format = 1\nscene = 'raster'\nmachine = 'm'\nworkers = 1\nframes = 9\nquiet = true\n\
        [[label]]\nname = 'bin'\ncount = 100\nmean_ns = 900\np50_ns = 480\np99_ns = 9000\nmax_ns = 10000\n\
        first_log2 = 8\ncounts = [96, 0, 0, 0, 0, 4]\n";

    /// Goal: draws have the measured mean, both modes of the histogram and no more than its maximum, and
    /// depend on all that they should depend on. Method: 20 000 draws of a label with short bodies and a few
    /// long ones.
    #[test]
    fn draws_follow_the_histogram() {
        let costs = DrawnCosts::parse(FILE, "raster", 7).unwrap();
        assert_eq!(costs.places(&["bin"]), Ok(vec![0]));
        let draws: Vec<u64> = (0..20_000).map(|n| costs.draw(3, 0, n).0).collect();
        let mean = draws.iter().sum::<u64>() / draws.len() as u64;
        // The limit takes something off.
        assert!((830..=905).contains(&mean), "{mean}");
        let long = draws.iter().filter(|&&ns| ns > 2_000).count();
        assert!(
            (600..1_000).contains(&long),
            "{long} of 20000, 4 % expected"
        );
        assert!(draws.iter().all(|&ns| ns <= 10_000));
        assert_eq!(costs.draw(3, 0, 5), costs.draw(3, 0, 5));
        let other = DrawnCosts::parse(FILE, "raster", 8).unwrap();
        let five = [
            costs.draw(3, 0, 5),
            costs.draw(4, 0, 5),
            costs.draw(3, 0, 6),
            other.draw(3, 0, 5),
        ];
        assert!(five[1..].iter().all(|&draw| draw != five[0]), "{five:?}");
    }

    /// Goal: a file that is no recording, of another scene, or damaged is refused, never a panic. Method: one
    /// of each.
    #[test]
    fn damaged_files_are_refused() {
        let refused = |text: &str, word: &str| {
            let error = DrawnCosts::parse(text, "raster", 1).unwrap_err();
            assert!(error.contains(word) && !error.contains('\n'), "{error}");
        };
        refused("format = 1", "--record-costs");
        refused(&FILE.replace("format = 1", "format = 2"), "format 2");
        refused(&FILE.replace("'raster'", "'graph'"), "scene graph");
        for damage in [
            "counts = []",
            "counts = [0, 0]",
            "counts = [9223372036854775807, 9223372036854775807]",
        ] {
            refused(
                &FILE.replace("counts = [96, 0, 0, 0, 0, 4]", damage),
                "\"bin\"",
            );
        }
        refused(
            &FILE.replace("first_log2 = 8", "first_log2 = 60"),
            "\"bin\"",
        );
        let costs = DrawnCosts::parse(FILE, "raster", 1).unwrap();
        assert!(
            costs
                .places(&["bin", "test"])
                .unwrap_err()
                .contains("\"test\"")
        );
    }
}
