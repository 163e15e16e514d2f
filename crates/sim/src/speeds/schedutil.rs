//! The operating point that Linux's schedutil chooses.
//!
//! It is the frequency at which the CPU would be busy for four fifths of its time: 1.25 · f_max · utilization
//! / capacity, at most f_max, taken up to the next operating point. Of a cluster the busiest CPU counts.
//!
//! Left out: the boost of tasks that waited for devices, clamps, and the f_max of real-time tasks.

/// The place of the point in the list, which goes from slow to fast.
pub(super) fn point_for(utilization: u32, capacity: u32, khz: &[u32]) -> usize {
    let last = khz.len() - 1;
    let top = u64::from(khz[last]);
    let wanted = (top + top / 4) * u64::from(utilization) / u64::from(capacity.max(1));
    khz.partition_point(|&point| u64::from(point) < wanted)
        .min(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the formula and the rounding are those of schedutil. Method: the points of Snapdragon 8 Gen 1's
    /// fastest core and utilizations around the steps, by hand: 1.25 · 2995.2 MHz / 1024 = 3.65625 MHz for
    /// each 1024th.
    #[test]
    fn points_are_those_of_the_formula() {
        let khz = [
            806_400, 940_800, 1_056_000, 1_171_200, 1_286_400, 1_401_600, 1_497_600, 1_612_800,
            1_728_000, 1_843_200, 1_958_400, 2_054_400, 2_169_600, 2_284_800, 2_400_000, 2_515_200,
            2_630_400, 2_726_400, 2_822_400, 2_841_600, 2_995_200,
        ];
        let at = |util| khz[point_for(util, 1024, &khz)];
        assert_eq!(at(0), 806_400);
        assert_eq!(at(205), 806_400); // 749.5
        assert_eq!(at(220), 806_400); // 804.4
        assert_eq!(at(221), 940_800); // 808.0
        assert_eq!(at(512), 1_958_400); // 1872.0
        assert_eq!(at(777), 2_841_600); // 2840.9
        assert_eq!(at(778), 2_995_200); // 2844.6
        assert_eq!(at(819), 2_995_200);
        assert_eq!(at(1024), 2_995_200);
    }

    /// Goal: a small CPU is at its highest frequency from 80 % of its capacity on. Method: a capacity of
    /// 262, as Snapdragon 8 Gen 1's small cores have.
    #[test]
    fn a_small_cpu_is_measured_by_its_own_capacity() {
        let khz = [307_200, 1_689_600, 1_785_600];
        assert_eq!(point_for(36, 262, &khz), 0); // 306.7
        assert_eq!(point_for(37, 262, &khz), 1); // 315.2
        assert_eq!(point_for(198, 262, &khz), 1); // 1686.8
        assert_eq!(point_for(199, 262, &khz), 2); // 1695.3
        assert_eq!(point_for(1024, 262, &khz), 2);
    }
}
