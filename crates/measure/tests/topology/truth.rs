//! Every machine is as its truth says.

use platform::topology::detect::detect;
use platform::{CpuSet, Quota, Topology};

use crate::Machine;

/// The true classes, slow to fast, cut to the CPUs that were online and determined.
fn true_classes(machine: &Machine, online: &CpuSet) -> Vec<CpuSet> {
    let classes = machine.truth["classes"].as_array().expect("a list");
    let undetermined = machine.list("/undetermined_cpus").unwrap_or_default();
    let sets = classes.iter().map(|class| {
        let cpus = CpuSet::parse(class["cpus"].as_str().expect("a list of CPUs"));
        cpus.intersection(online).difference(&undetermined)
    });
    sets.filter(|set| !set.is_empty()).collect()
}

fn found_classes(machine: &Machine, found: &Topology) -> Vec<CpuSet> {
    let undetermined = machine.list("/undetermined_cpus").unwrap_or_default();
    let sets = found.classes().iter();
    let sets = sets.map(|class| class.cpus.difference(&undetermined));
    sets.filter(|set| !set.is_empty()).collect()
}

/// Cores and the most threads of one, where the truth knows them of the CPUs that were online.
fn true_cores(machine: &Machine, online: &CpuSet) -> Option<(u64, u64)> {
    let number = |pointer: &str| machine.truth.pointer(pointer)?.as_u64();
    let whole = machine.list("/all_cpus").as_ref() == Some(online);
    if whole {
        Some((
            number("/smt/physical_cores")?,
            number("/smt/max_threads_per_core")?,
        ))
    } else {
        None
    }
}

/// The truth knows its cpuset from the program that made the archive, which left the cpuset's own files out.
const WITHOUT_CPUSET: &str = "hwloc-opteron-32-cgroup2";

/// The errors in a result, a line each.
fn differences(machine: &Machine, found: &Topology) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, is: String, should: String| {
        if is != should {
            wrong.push(format!("{}: {what} is {is}, not {should}", machine.id));
        }
    };
    let lists = |sets: &[CpuSet]| {
        let lists: Vec<String> = sets.iter().map(CpuSet::to_string).collect();
        lists.join(" / ")
    };
    let online = machine.list("/online_cpus").expect("a list");
    let limits = found.limits();
    compare("online", limits.online.to_string(), online.to_string());
    if machine.is_certain() {
        let (is, should) = (
            found_classes(machine, found),
            true_classes(machine, &online),
        );
        compare("classes", lists(&is), lists(&should));
    }
    if let Some((cores, threads)) = true_cores(machine, &online) {
        let sets = found.cores();
        let most = sets.iter().map(CpuSet::len).max().unwrap_or(0);
        let (is, should) = (
            format!("{} of {most}", sets.len()),
            format!("{cores} of {threads}"),
        );
        compare("cores and threads", is, should);
    }
    let usable = machine
        .list("/limits/usable_cpus")
        .unwrap_or(online.clone());
    let usable = if machine.id == WITHOUT_CPUSET {
        online
    } else {
        usable
    };
    compare("usable", limits.usable().to_string(), usable.to_string());
    let limit = |key: &str| machine.truth["limits"][key].clone();
    let quota = limits.quota.map(Quota::cpus);
    compare(
        "quota",
        format!("{quota:?}"),
        format!("{:?}", limit("quota_cpus").as_f64()),
    );
    // The truth knows no floor of two; see `Limits::effective_parallelism`.
    let parallelism = limit("parallelism_ceil").as_u64().expect("a number");
    let parallelism = if machine.id == WITHOUT_CPUSET {
        usable.len() as u64
    } else {
        parallelism.max(usable.len().min(2) as u64)
    };
    let is = found.effective_parallelism().to_string();
    compare("parallelism", is, parallelism.to_string());
    wrong
}

/// Goal: detection is right about every machine whose truth is certain: CPUs online, classes from slow to
/// fast, cores, usable CPUs and quota; of the others, about all but the classes. Method: each is read from
/// its archive and compared.
#[test]
fn every_machine_is_what_its_truth_says() {
    let machines = Machine::all();
    assert_eq!(machines.len(), 160);
    let wrong: Vec<String> = machines
        .iter()
        .flat_map(|machine| differences(machine, &detect(&machine.tree)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: no machine ends with two workers because of a prime core or its kernel's numbers. Method: the fast
/// set of each machine has four CPUs, or half of those that can be used.
#[test]
fn fast_sets_are_large_enough() {
    for machine in Machine::all() {
        let found = detect(&machine.tree);
        let usable = found.limits().usable();
        let fast = found.fast(&usable);
        let least = usable.len().div_ceil(2).min(4);
        assert!(
            fast.len() >= least && fast.is_subset(&usable),
            "{}: {fast}",
            machine.id
        );
    }
}

/// Goal: the phones of the articles have the fast CPUs that they have. Method: their names and numbers.
#[test]
fn phones_have_their_fast_cores() {
    let machines = Machine::all();
    for (id, fast) in [
        ("asm-galaxy-s22-sm8450", "4-7"),
        ("asm-galaxy-s22-sm8450-cap1024", "4-7"),
        ("asm-pixel6-gs101", "4-7"),
        ("asm-snapdragon-8gen3", "2-7"),
        ("asm-mt6797-all-online", "4-9"),
        ("asm-ultra7-155h", "0-11"),
        ("phone-pixel", "0-3"),
        ("phone-oneplus-3t", "0-3"),
    ] {
        let machine = machines.iter().find(|machine| machine.id == id);
        let found = detect(&machine.expect("it is there").tree);
        let got = found.fast(&found.limits().usable());
        assert_eq!(got.to_string(), fast, "{id}");
    }
}

/// Goal: a phone of which only a part may be used has its middle cores among the fast ones, and its little
/// ones not. Method: phones cut to a prime core with a middle one, with a little one, and with both.
#[test]
fn a_part_of_a_phone_has_its_middle_cores() {
    let machines = Machine::all();
    for (id, usable, fast) in [
        ("asm-galaxy-s22-sm8450", "6-7", "6-7"),
        ("asm-galaxy-s22-sm8450", "3,7", "7"),
        ("asm-galaxy-s22-sm8450", "3,6-7", "6-7"),
        ("asm-snapdragon-865", "6-7", "6-7"),
        ("asm-snapdragon-865", "0,7", "7"),
        ("asm-dimensity-9300", "6-7", "6-7"),
    ] {
        let machine = machines.iter().find(|machine| machine.id == id);
        let found = detect(&machine.expect("it is there").tree);
        let got = found.fast(&CpuSet::parse(usable));
        assert_eq!(got.to_string(), fast, "{id}: {usable}");
    }
}
