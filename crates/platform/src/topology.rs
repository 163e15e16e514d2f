//! What the machine is: which CPUs there are and which of them share what.
//!
//! Invariant: detection always answers something usable. What it cannot find out it leaves at the
//! neutral value ("everything shares everything"), which costs locality and never a CPU.

/// A set of logical CPUs.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct CpuSet {
    words: Vec<u64>,
}

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
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words
            .get(cpu as usize / 64)
            .is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether there is no CPU in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.words.len() as u32 * 64).filter(|&cpu| self.contains(cpu))
    }

    /// The set a kernel list such as `0-3,8,10-11` describes; parts that are not understood are
    /// left out.
    pub fn parse(list: &str) -> CpuSet {
        const CPUS_MAX: u32 = 1 << 16;
        let mut set = CpuSet::new();
        for part in list.trim().split(',').filter(|part| !part.is_empty()) {
            let mut ends = part.splitn(2, '-').map(|n| n.trim().parse::<u32>());
            let Some(Ok(first)) = ends.next() else {
                continue;
            };
            let last = match ends.next() {
                None => first,
                Some(Ok(last)) => last,
                Some(Err(_)) => continue,
            };
            (first..=last.min(CPUS_MAX)).for_each(|cpu| set.insert(cpu));
        }
        set
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl std::fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// How far data has to travel between two CPUs, near to far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Distance {
    /// The same core (the same CPU, or its SMT sibling).
    Core,
    /// A shared last-level cache.
    Cache,
    /// The same memory node.
    Node,
    /// Another memory node.
    Remote,
}

/// Where a CPU sits. Numbers are only compared for equality.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuPlace {
    /// The logical CPU.
    pub cpu: u32,
    /// The core it is a thread of.
    pub core: u32,
    /// The last-level cache it uses.
    pub cache: u32,
    /// The memory node it belongs to.
    pub node: u32,
}

/// The machine as far as the job system needs to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    allowed: CpuSet,
    places: Vec<CpuPlace>,
    effective_parallelism: usize,
    model: String,
}

impl Topology {
    /// A machine with these CPUs, on which the process may use `effective_parallelism` of them at a
    /// time (its affinity and its quota considered).
    pub fn new(places: Vec<CpuPlace>, effective_parallelism: usize, model: String) -> Topology {
        Topology {
            allowed: places.iter().map(|place| place.cpu).collect(),
            places,
            effective_parallelism: effective_parallelism.max(1),
            model,
        }
    }

    /// A machine of `cpus` equal CPUs.
    pub fn uniform(cpus: usize) -> Topology {
        let place = |cpu| CpuPlace {
            cpu,
            core: cpu,
            cache: 0,
            node: 0,
        };
        Topology::new(
            (0..cpus as u32).map(place).collect(),
            cpus,
            "uniform".into(),
        )
    }

    /// How many threads of this process can run at the same time; at least 1.
    pub fn effective_parallelism(&self) -> usize {
        self.effective_parallelism
    }

    /// The CPUs this process may use.
    pub fn allowed(&self) -> &CpuSet {
        &self.allowed
    }

    /// What the machine calls its processor.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// How far apart two CPUs are; CPUs nobody described count as neighbours in one cache.
    pub fn distance(&self, a: u32, b: u32) -> Distance {
        if a == b {
            return Distance::Core;
        }
        let place = |cpu| self.places.iter().find(|place| place.cpu == cpu);
        match (place(a), place(b)) {
            (Some(a), Some(b)) if a.core == b.core => Distance::Core,
            (Some(a), Some(b)) if a.cache == b.cache => Distance::Cache,
            (Some(a), Some(b)) if a.node == b.node => Distance::Node,
            (Some(_), Some(_)) => Distance::Remote,
            _ => Distance::Cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_read_and_garbage_is_left_out() {
        let set = |list| CpuSet::parse(list).iter().collect::<Vec<_>>();
        assert_eq!(set("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(set(""), Vec::<u32>::new());
        assert_eq!(set("x,3,4-z,9-7,64"), [3, 64]);
        assert!(CpuSet::parse("0-4294967295").len() <= 65_537);
    }

    #[test]
    fn distance_grows_from_core_to_node() {
        let place = |cpu, core, cache, node| CpuPlace {
            cpu,
            core,
            cache,
            node,
        };
        let places = vec![
            place(0, 0, 0, 0),
            place(1, 0, 0, 0),
            place(2, 1, 0, 0),
            place(3, 2, 1, 0),
            place(4, 3, 2, 1),
        ];
        let machine = Topology::new(places, 5, String::new());
        let from_zero = [0, 1, 2, 3, 4, 99].map(|cpu| machine.distance(0, cpu));
        use Distance::*;
        assert_eq!(from_zero, [Core, Core, Cache, Node, Remote, Cache]);
    }
}
