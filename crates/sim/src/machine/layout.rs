//! The places of the CPUs of a machine file: lists such as `0-3,8` become a place for each CPU.
//!
//! The file names groups. Groups that it leaves out are numbered here: each core is a module of its own, and
//! the threads of a core are next to each other or apart, as the file says.

use serde::Deserialize;

use super::CpuSpec;
use super::file::ClusterTable;
use super::given::{Facts, Given};

/// The most CPUs of a machine.
pub(super) const CPUS_MAX: usize = 1024;

/// The groups of CPUs that share something.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Layout {
    caches: Given<Vec<String>>,
    nodes: Given<Vec<String>>,
    modules: Option<Given<Vec<String>>>,
}

/// The order in which the hardware threads of cores are numbered within their cluster and cache.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Siblings {
    /// One after the other: 0 and 1, 2 and 3.
    Adjacent,
    /// First one thread of each core, then the others: of four cores 0 and 4, 1 and 5.
    Apart,
}

/// A place for each CPU.
pub(super) fn places(
    layout: &Layout,
    clusters: &[ClusterTable],
    facts: &mut Facts<'_>,
) -> Result<Vec<CpuSpec>, String> {
    let mut groups = Vec::new();
    for cluster in clusters {
        let key = format!("cluster.{}.cpus", cluster.name);
        groups.push(facts.take(&key, &cluster.cpus)?.clone());
    }
    let clustered = numbered("cluster.*.cpus", &groups, None)?;
    let cpus = clustered.len();
    let caches = numbered(
        "layout.caches",
        facts.take("layout.caches", &layout.caches)?,
        Some(cpus),
    )?;
    let nodes = numbered(
        "layout.nodes",
        facts.take("layout.nodes", &layout.nodes)?,
        Some(cpus),
    )?;
    let mut places: Vec<CpuSpec> = (0..cpus)
        .map(|cpu| CpuSpec {
            cluster: clustered[cpu],
            core: 0,
            module: 0,
            cache: caches[cpu],
            node: nodes[cpu],
        })
        .collect();
    place_cores(&mut places, clusters, facts)?;
    if let Some(modules) = &layout.modules {
        place_modules(&mut places, facts.take("layout.modules", modules)?)?;
    }
    are_nested(&places)?;
    Ok(places)
}

/// Numbers the cores.
fn place_cores(
    places: &mut [CpuSpec],
    clusters: &[ClusterTable],
    facts: &mut Facts<'_>,
) -> Result<(), String> {
    let mut next = 0;
    for (number, cluster) in clusters.iter().enumerate() {
        let (threads, siblings) = threads(cluster, facts)?;
        let key = format!("cluster.{}.threads", cluster.name);
        let is_here = |cpu: &usize| places[*cpu].cluster as usize == number;
        let here: Vec<usize> = (0..places.len()).filter(is_here).collect();
        let mut caches: Vec<u32> = here.iter().map(|&cpu| places[cpu].cache).collect();
        caches.sort_unstable();
        caches.dedup();
        for cache in caches {
            let near: Vec<usize> = here
                .iter()
                .copied()
                .filter(|&cpu| places[cpu].cache == cache)
                .collect();
            if !near.len().is_multiple_of(threads) {
                let many = near.len();
                return Err(format!(
                    "{key}: {many} CPUs that share a cache are no cores of {threads}"
                ));
            }
            let cores = near.len() / threads;
            for (index, &cpu) in near.iter().enumerate() {
                let core = match siblings {
                    Siblings::Adjacent => index / threads,
                    Siblings::Apart => index % cores,
                };
                places[cpu].core = next + core as u32;
                places[cpu].module = places[cpu].core;
            }
            next += cores as u32;
        }
    }
    Ok(())
}

/// The number of hardware threads of each core of this cluster, and the order of their numbers.
fn threads(cluster: &ClusterTable, facts: &mut Facts<'_>) -> Result<(usize, Siblings), String> {
    let key = format!("cluster.{}.threads", cluster.name);
    let way = format!("cluster.{}.siblings", cluster.name);
    let threads = cluster
        .threads
        .as_ref()
        .map(|given| facts.take(&key, given))
        .transpose()?;
    let siblings = cluster
        .siblings
        .as_ref()
        .map(|given| facts.take(&way, given))
        .transpose()?;
    match (threads.copied().unwrap_or(1), siblings) {
        (1, None) => Ok((1, Siblings::Adjacent)),
        (threads @ 2..=8, Some(&siblings)) => Ok((threads as usize, siblings)),
        (2..=8, None) => Err(format!("{way}: is missing: say `adjacent` or `apart`")),
        (1, Some(_)) => Err(format!("{way}: a thread alone has none; leave it out")),
        (threads, _) => Err(format!("{key}: is {threads}; a core has 1 to 8")),
    }
}

/// Numbers the modules. Without groups they have the numbers of the cores, and each core is its own module.
fn place_modules(places: &mut [CpuSpec], modules: &[String]) -> Result<(), String> {
    let mut seen = vec![false; places.len()];
    for (index, list) in modules.iter().enumerate() {
        for cpu in cpus_of("layout.modules", list)? {
            if cpu >= places.len() || std::mem::replace(&mut seen[cpu], true) {
                return Err(format!(
                    "layout.modules: CPU {cpu} is in no cluster, or in two modules"
                ));
            }
            places[cpu].module = (places.len() + index) as u32;
        }
    }
    Ok(())
}

/// A core lies in one module, a module in one cluster and one cache, a cache in one node.
fn are_nested(places: &[CpuSpec]) -> Result<(), String> {
    for (cpu, a) in places.iter().enumerate() {
        for (other, b) in places[..cpu].iter().enumerate() {
            let torn = match () {
                () if a.core == b.core && a.module != b.module => "a core and no module",
                () if a.module == b.module && (a.cluster, a.cache) != (b.cluster, b.cache) => {
                    "a module, and not both a cluster and a cache"
                }
                () if a.cache == b.cache && a.node != b.node => "a cache and no node",
                () => continue,
            };
            return Err(format!(
                "layout: CPUs {other} and {cpu} share {torn}; put them together"
            ));
        }
    }
    Ok(())
}

/// The group of each CPU. Each CPU from 0 on is in exactly one of the groups.
fn numbered(key: &str, groups: &[String], cpus: Option<usize>) -> Result<Vec<u32>, String> {
    let mut found: Vec<Option<u32>> = Vec::new();
    for (number, list) in groups.iter().enumerate() {
        for cpu in cpus_of(key, list)? {
            if found.len() <= cpu {
                found.resize(cpu + 1, None);
            }
            if found[cpu].replace(number as u32).is_some() {
                return Err(format!("{key}: CPU {cpu} is named twice"));
            }
        }
    }
    if let Some(cpus) = cpus
        && found.len() > cpus
    {
        return Err(format!(
            "{key}: CPU {cpus} is in no cluster; there are {cpus} CPUs"
        ));
    }
    found.resize(cpus.unwrap_or(found.len()), None);
    if found.is_empty() {
        return Err(format!("{key}: is empty; a machine has a CPU"));
    }
    let all: Option<Vec<u32>> = found.iter().copied().collect();
    all.ok_or_else(|| {
        let hole = found.iter().position(Option::is_none).unwrap_or(0);
        format!("{key}: CPU {hole} is in none of them; each CPU from 0 on is in one")
    })
}

/// The CPUs that a list such as `0-3,8` names. Unlike the reader of the kernel's files it is strict: a
/// mistake in a machine file must be seen.
fn cpus_of(key: &str, list: &str) -> Result<Vec<usize>, String> {
    let number = |text: &str| {
        let number = text.parse().ok().filter(|&cpu: &usize| cpu < CPUS_MAX);
        number.ok_or_else(|| {
            let text: String = text.chars().take(40).collect();
            format!(
                "{key}: `{text}` is no CPU: numbers go from 0 to {}, as in `0-3,8`",
                CPUS_MAX - 1
            )
        })
    };
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || cpus.len() > CPUS_MAX {
            return Err(format!(
                "{key}: `{first}-{last}` runs backwards, or is one list too many"
            ));
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}
