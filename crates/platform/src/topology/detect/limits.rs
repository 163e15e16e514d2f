//! What may be used at this moment: online CPUs, the mask, cpusets and quotas.

use super::cgroup::Groups;
use super::cpuinfo::CpuInfo;
use super::reader::{CPUS, Reader};
use crate::{CpuSet, Limits};

/// Reads everything that can change while a program runs.
pub(super) fn read(reader: &mut Reader<'_>) -> Limits {
    let mask = mask(reader);
    let online = online(reader, mask.as_ref());
    let mask = mask.filter(|mask| {
        let sound = !mask.intersection(&online).is_empty();
        if !sound {
            let note = format!("the mask allows {mask} only, but {online} are online: left out");
            reader.notes.add(note);
        }
        sound
    });
    let groups = Groups::read(reader);
    let cpuset = groups.cpuset(reader, &online).and_then(|set| {
        if set.intersection(&online).is_empty() {
            let note = format!("the cpuset allows {set} only, but {online} are online: left out");
            reader.notes.add(note);
            return None;
        }
        Some(set)
    });
    let quota = groups.quota(reader);
    let allowed = match (mask, cpuset) {
        (Some(mask), Some(cpuset)) => {
            let both = mask.intersection(&cpuset);
            if both.intersection(&online).is_empty() {
                // Changed between two readings: the mask is what counts.
                mask
            } else {
                both
            }
        }
        (Some(mask), None) => mask,
        (None, cpuset) => cpuset.unwrap_or_else(|| online.clone()),
    };
    Limits {
        online,
        allowed,
        quota,
    }
}

/// CPUs that run. Where the kernel's list is missing or broken: those that say so themselves, else those that
/// `cpuinfo` names, else those of the mask, else one.
fn online(reader: &mut Reader<'_>, mask: Option<&CpuSet>) -> CpuSet {
    let (listed, sound) = reader
        .sound_list(&format!("{CPUS}/online"))
        .unwrap_or_default();
    if sound && !listed.is_empty() {
        return listed;
    }
    let mut found = listed;
    let mut off = CpuSet::new();
    for cpu in reader.numbered(CPUS, "cpu") {
        let runs = reader.text(&format!("{CPUS}/cpu{cpu}/online"));
        match runs.as_deref() {
            Some("0") => off.insert(cpu),
            _ => found.insert(cpu),
        }
    }
    // Folders of CPUs that run may be missing; these files name such CPUs, too.
    let named = CpuInfo::read(&reader.text("proc/cpuinfo").unwrap_or_default()).cpus;
    if let Some(offline) = reader.list(&format!("{CPUS}/offline")) {
        let present = reader.list(&format!("{CPUS}/present"));
        let known = found.union(&named).union(&present.unwrap_or_default());
        let running = known.difference(&offline);
        found = if running.is_empty() { known } else { running };
    } else if !found.is_empty() {
        found = found.union(&named.difference(&off));
    }
    if !found.is_empty() {
        let note = format!("{CPUS}/online says nothing; by what others say: {found}");
        reader.notes.add(note);
        return found;
    }
    let (found, whence) = match (named.is_empty(), mask) {
        (false, _) => (named, "proc/cpuinfo"),
        (true, Some(mask)) if !mask.is_empty() => (mask.clone(), "the mask"),
        _ => ([0].into_iter().collect(), "nothing: there must be one"),
    };
    let note =
        format!("nothing in {CPUS} says which CPUs are online; taken from {whence}: {found}");
    reader.notes.add(note);
    found
}

/// The mask of the process.
fn mask(reader: &mut Reader<'_>) -> Option<CpuSet> {
    if let Some(mask) = reader.source.affinity().filter(|mask| !mask.is_empty()) {
        return Some(mask);
    }
    let status = reader.text("proc/self/status")?;
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.map(str::to_owned)
    };
    let list = value("Cpus_allowed_list:").map(|text| CpuSet::read_list(&text));
    let mask = value("Cpus_allowed:").map(|text| CpuSet::read_mask(&text));
    let sound = |set: &(CpuSet, bool)| set.1 && !set.0.is_empty();
    let found = list.filter(sound).or(mask.filter(sound));
    if found.is_none() {
        let note = "proc/self/status does not say which CPUs are allowed";
        reader.notes.add(note.into());
    }
    found.map(|(set, _)| set)
}

/// CPUs that the scheduler was told to leave alone.
pub(super) fn isolated(reader: &mut Reader<'_>) -> CpuSet {
    let isolated = reader.list(&format!("{CPUS}/isolated"));
    isolated.unwrap_or_default()
}
