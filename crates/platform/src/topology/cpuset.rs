//! Sets of logical CPUs, and the two forms in which the kernel writes them.

use std::fmt;

/// A set of logical CPUs.
///
/// ```
/// # use paceline_platform::CpuSet;
/// let set = CpuSet::parse("0-3,8\n");
/// assert_eq!(set.len(), 5);
/// assert_eq!(set.to_string(), "0-3,8");
/// ```
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct CpuSet {
    /// Never ends in a zero: equal sets are equal words.
    words: Vec<u64>,
}

/// CPUs from here on are not believed when text names them: the largest machines that Linux can be built for
/// have so many, and what is made of a list, such as each worker's CPUs, grows with its square.
pub(super) const CPUS_MAX: u32 = 1 << 13;

impl CpuSet {
    /// The empty set.
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: u32) {
        let word = cpu as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu % 64);
    }

    /// Takes a CPU out.
    pub fn remove(&mut self, cpu: u32) {
        if let Some(word) = self.words.get_mut(cpu as usize / 64) {
            *word &= !(1 << (cpu % 64));
        }
        self.trim();
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        let word = self.words.get(cpu as usize / 64);
        word.is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        let ones = self.words.iter().map(|word| word.count_ones() as usize);
        ones.sum()
    }

    /// Whether there is no CPU in the set.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let numbered = (0u32..).zip(&self.words);
        numbered.flat_map(|(index, &word)| {
            let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| index * 64 + bit)
        })
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        self.with(other, |a, b| a & b)
    }

    /// The CPUs that are in either set.
    #[must_use]
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        self.with(other, |a, b| a | b)
    }

    /// The CPUs that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        self.with(other, |a, b| a & !b)
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.difference(other).is_empty()
    }

    fn with(&self, other: &CpuSet, operation: impl Fn(u64, u64) -> u64) -> CpuSet {
        let word = |set: &CpuSet, index: usize| set.words.get(index).copied().unwrap_or(0);
        let count = self.words.len().max(other.words.len());
        let words = (0..count).map(|index| operation(word(self, index), word(other, index)));
        let mut set = CpuSet {
            words: words.collect(),
        };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// The set a kernel list such as `0-3,8,10-11` describes; parts that are not understood are
    /// left out.
    #[inline]
    pub fn parse(list: &str) -> CpuSet {
        CpuSet::read_list(list).0
    }

    /// As [`parse`](CpuSet::parse), and whether all of the text was understood. Strides (`0-10:2/4`: two of
    /// every four), blanks between numbers, and the kernel's `(null)` are.
    #[inline]
    pub(crate) fn read_list(list: &str) -> (CpuSet, bool) {
        let mut set = CpuSet::new();
        let mut understood = true;
        let parts = list.split(|c: char| c == ',' || c.is_whitespace());
        for part in parts.filter(|part| !part.is_empty() && *part != "(null)") {
            match Run::read(part) {
                Some(run) => run.add_to(&mut set),
                None => understood = false,
            }
        }
        (set, understood)
    }

    /// The set a kernel mask such as `00000000,0000000f` describes, and whether all of it was understood: the
    /// last digit is for CPUs 0 to 3.
    #[cfg(any(test, feature = "machine"))]
    pub(crate) fn read_mask(mask: &str) -> (CpuSet, bool) {
        let mut set = CpuSet::new();
        let mut understood = true;
        let digits = mask.trim().chars().rev().filter(|&c| c != ',');
        for (index, digit) in (0..CPUS_MAX / 4).zip(digits) {
            match digit.to_digit(16) {
                Some(digit) => {
                    for bit in (0..4).filter(|bit| digit & (1 << bit) != 0) {
                        set.insert(index * 4 + bit);
                    }
                }
                None => understood = false,
            }
        }
        (set, understood)
    }
}

/// `first-last:used/group` of a list: of every `group` CPUs from `first` on, the first `used`.
struct Run {
    first: u32,
    last: u32,
    used: u32,
    group: u32,
}

impl Run {
    fn read(part: &str) -> Option<Run> {
        let (range, stride) = match part.split_once(':') {
            Some((range, stride)) => (range, stride.split_once('/')?),
            None => (part, ("1", "1")),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let run = Run {
            first: number(first)?,
            last: number(last)?,
            used: number(stride.0)?,
            group: number(stride.1)?,
        };
        let sound = run.first <= run.last && run.last < CPUS_MAX;
        (sound && run.used > 0 && run.used <= run.group).then_some(run)
    }

    fn add_to(&self, set: &mut CpuSet) {
        let used = |cpu: &u32| (cpu - self.first) % self.group < self.used;
        for cpu in (self.first..=self.last).filter(used) {
            set.insert(cpu);
        }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// As the kernel writes lists: `0-3,8`.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|&next| next == last + 1) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last != first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: lists of all the kernel's forms are read, garbage is left out and noticed, and no list takes
    /// memory without bound. Method: one of each.
    #[test]
    fn kernel_lists_are_read_and_garbage_is_left_out_long() {
        let set = |list| CpuSet::parse(list).iter().collect::<Vec<_>>();
        assert_eq!(set("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(set("0 1 2"), [0, 1, 2]);
        assert_eq!(set(""), Vec::<u32>::new());
        assert_eq!(set("x,3,4-z,9-7,64"), [3, 64]);
        assert_eq!(set("0-10:2/4"), [0, 1, 4, 5, 8, 9]);
        assert!(CpuSet::parse("0-4294967295").is_empty());
        let understood = |list| CpuSet::read_list(list).1;
        for good in ["", "\n", "0-3,", " (null)\n", "7"] {
            assert!(understood(good), "{good:?}");
        }
        for bad in [
            "garbage", "0-", "3-1", "0-3:0/4", "0-3:5/4", "70000", "8192", "0-65535", "1.5",
        ] {
            assert!(!understood(bad), "{bad:?}");
        }
    }

    /// Goal: masks of any length are read. Method: words with commas, an odd number of digits, garbage.
    #[test]
    fn kernel_masks_are_read() {
        let set = |mask| CpuSet::read_mask(mask).0.to_string();
        assert_eq!(set("00000001,00000101\n"), "0,8,32");
        assert_eq!(set("3f"), "0-5");
        assert_eq!(set("0"), "");
        assert!(!CpuSet::read_mask("0x3f").1);
    }

    /// Goal: sets say what they hold, and equal ones are equal. Method: a large CPU comes and goes.
    #[test]
    fn sets_are_written_as_lists() {
        let mut set = CpuSet::parse("0-3,8,10-11");
        set.insert(500);
        assert_eq!(set.to_string(), "0-3,8,10-11,500");
        set.remove(500);
        assert_eq!(set, CpuSet::parse("0-3,8,10-11"));
        let other = CpuSet::parse("2-8");
        assert_eq!(set.intersection(&other).to_string(), "2-3,8");
        assert_eq!(set.difference(&other).to_string(), "0-1,10-11");
        assert_eq!(set.union(&other).to_string(), "0-8,10-11");
        assert!(set.intersection(&other).is_subset(&set) && !set.is_subset(&other));
    }
}
