//! Which CPUs are threads of one core, share a last-level cache, or belong to one memory node.
//!
//! Numbers of cores, clusters and packages are names and nothing else: they need not begin with zero, and a
//! package is no memory node. Groups count only if the CPU whose file names them is in them.

use std::collections::BTreeMap;

use super::reader::{CPUS, Reader};
use super::speeds::Speed;
use crate::{CpuPlace, CpuSet};

/// Where the CPUs are.
pub(super) struct Places {
    pub(super) places: Vec<CpuPlace>,
    /// Those whose cache is known. The others count as sharing one.
    pub(super) caches_known: CpuSet,
}

/// Reads the places of these CPUs, which are online.
pub(super) fn read(reader: &mut Reader<'_>, online: &CpuSet, speeds: &[Speed]) -> Places {
    let nodes = nodes(reader, online);
    let mut cores = Cores::default();
    let mut caches_known = CpuSet::new();
    let mut cache_of = BTreeMap::<u32, u32>::new();
    let mut places = Vec::new();
    for speed in speeds {
        let cpu = speed.cpu;
        let core = cores.core_of(reader, online, speed);
        let cache = cache_of.get(&cpu).copied().or_else(|| {
            let group = last_cache(reader, online, cpu)?;
            let first = group.first()?;
            // Each CPU of the group has the same file.
            for member in group.iter() {
                cache_of.entry(member).or_insert(first);
            }
            Some(first)
        });
        if cache.is_some() {
            caches_known.insert(cpu);
        }
        places.push(CpuPlace {
            cpu,
            core,
            cache: cache.unwrap_or(UNKNOWN),
            node: nodes.get(&cpu).copied().unwrap_or(0),
            package: speed.package.unwrap_or(UNKNOWN),
        });
    }
    Places {
        places,
        caches_known,
    }
}

/// What CPUs share of which nothing is known.
const UNKNOWN: u32 = u32::MAX;

/// Which core each CPU is a thread of, as far as it was asked.
#[derive(Default)]
struct Cores {
    /// The first CPU with this package and core number, where only these are known.
    named: BTreeMap<(u32, u64), u32>,
}

impl Cores {
    /// The first CPU of this one's core: of its siblings, or of those with the same numbers, or itself.
    fn core_of(&mut self, reader: &mut Reader<'_>, online: &CpuSet, speed: &Speed) -> u32 {
        let cpu = speed.cpu;
        let folder = format!("{CPUS}/cpu{cpu}/topology");
        let siblings = ["core_cpus", "thread_siblings"]
            .into_iter()
            .find_map(|name| {
                let set = reader.cpus(
                    &format!("{folder}/{name}_list"),
                    &format!("{folder}/{name}"),
                )?;
                own(reader, &format!("{folder}/{name}_list"), cpu, &set)
            });
        if let Some(siblings) = siblings {
            return siblings.intersection(online).first().unwrap_or(cpu);
        }
        let number = reader.number(&format!("{folder}/core_id"));
        match (speed.package, number) {
            (Some(package), Some(number)) if number != 65535 => {
                *self.named.entry((package, number)).or_insert(cpu)
            }
            _ => cpu,
        }
    }
}

/// The set if the CPU is in it.
fn own(reader: &mut Reader<'_>, path: &str, cpu: u32, set: &CpuSet) -> Option<CpuSet> {
    if set.contains(cpu) {
        return Some(set.clone());
    }
    reader
        .notes
        .add(format!("{path} leaves out the CPU itself: not believed"));
    None
}

/// The CPUs that share the CPU's last cache: the highest level it has, which on some parts is the second
/// for some CPUs and the third for others.
fn last_cache(reader: &mut Reader<'_>, online: &CpuSet, cpu: u32) -> Option<CpuSet> {
    let folder = format!("{CPUS}/cpu{cpu}/cache");
    let mut best: Option<(u64, CpuSet)> = None;
    for index in reader.numbered(&folder, "index") {
        let folder = format!("{folder}/index{index}");
        let level = reader
            .value(&format!("{folder}/level"))
            .unwrap_or(u64::from(index));
        let known = best.as_ref().map_or(0, |best| best.0);
        if level < known || reader.text(&format!("{folder}/type")).as_deref() == Some("Instruction")
        {
            continue;
        }
        let list = format!("{folder}/shared_cpu_list");
        let shared = reader.cpus(&list, &format!("{folder}/shared_cpu_map"));
        if let Some(shared) = shared.and_then(|set| own(reader, &list, cpu, &set)) {
            best = Some((level, shared.intersection(online)));
        }
    }
    best.map(|(_, shared)| shared)
}

/// The node of each CPU, where one is known. Nodes without CPUs are other memory.
fn nodes(reader: &mut Reader<'_>, online: &CpuSet) -> BTreeMap<u32, u32> {
    const NODES: &str = "sys/devices/system/node";
    let mut node_of = BTreeMap::new();
    for node in reader.numbered(NODES, "node") {
        let folder = format!("{NODES}/node{node}");
        let cpus = reader.cpus(&format!("{folder}/cpulist"), &format!("{folder}/cpumap"));
        for cpu in cpus.unwrap_or_default().intersection(online).iter() {
            let first = *node_of.entry(cpu).or_insert(node);
            if first != node {
                let note = format!("CPU {cpu} is in nodes {first} and {node}: the first counts");
                reader.notes.add(note);
            }
        }
    }
    if node_of.is_empty() {
        for cpu in online.iter() {
            if let Some(&node) = reader.numbered(&format!("{CPUS}/cpu{cpu}"), "node").first() {
                node_of.insert(cpu, node);
            }
        }
    }
    node_of
}
