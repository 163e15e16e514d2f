//! The numbers of CPUs mean nothing: other numbers, the same machine.

use platform::topology::detect::{Tree, detect};
use platform::{CpuSet, Topology};
use proptest::prelude::*;

/// A CPU as its files describe it.
#[derive(Clone, Debug)]
struct Cpu {
    capacity: Option<u32>,
    midr: Option<u32>,
    cluster: usize,
    core: usize,
}

/// CPUs of one cluster share a clock, a cache, a node and a package.
#[derive(Clone, Debug)]
struct Spec {
    cpus: Vec<Cpu>,
    khz: Vec<Option<u32>>,
    perf: Vec<u32>,
}

const CLUSTERS: usize = 3;

fn specs() -> impl Strategy<Value = Spec> {
    let capacity = prop::option::of(prop::sample::select(vec![250_u32, 400, 430, 800, 1024]));
    let midr = prop::option::of(prop::sample::select(vec![
        0x410f_d050_u32,
        0x410f_d0a0,
        0x411f_d460,
    ]));
    let cpu = (capacity, midr, 0..CLUSTERS, 0..6_usize);
    let cpu = cpu.prop_map(|(capacity, midr, cluster, core)| Cpu {
        capacity,
        midr,
        cluster,
        core,
    });
    let khz = prop::option::of(prop::sample::select(vec![
        1_800_000_u32,
        1_900_000,
        2_800_000,
    ]));
    let khz = prop::collection::vec(khz, CLUSTERS);
    let perf = prop::collection::vec(prop::sample::select(vec![0_u32, 100, 105, 160]), CLUSTERS);
    let cpus = prop::collection::vec(cpu, 1..12);
    (cpus, khz, perf).prop_map(|(cpus, khz, perf)| Spec { cpus, khz, perf })
}

/// The machine's files, if its CPUs have these numbers.
fn tree(spec: &Spec, numbers: &[u32]) -> Tree {
    const CPUS: &str = "sys/devices/system/cpu";
    let mut tree = Tree::default();
    let set = |alike: &dyn Fn(&Cpu) -> bool| {
        let cpus = spec.cpus.iter().zip(numbers).filter(|(cpu, _)| alike(cpu));
        cpus.map(|(_, &number)| number)
            .collect::<CpuSet>()
            .to_string()
    };
    tree.put(&format!("{CPUS}/online"), set(&|_| true));
    for cluster in 0..CLUSTERS {
        let cpus = set(&|cpu| cpu.cluster == cluster);
        tree.put(
            &format!("sys/devices/system/node/node{cluster}/cpulist"),
            cpus.clone(),
        );
        if let Some(khz) = spec.khz[cluster] {
            tree.put(
                &format!("{CPUS}/cpufreq/policy{cluster}/related_cpus"),
                cpus,
            );
            let path = format!("{CPUS}/cpufreq/policy{cluster}/cpuinfo_max_freq");
            tree.put(&path, khz.to_string());
        }
    }
    for (cpu, number) in spec.cpus.iter().zip(numbers) {
        let folder = format!("{CPUS}/cpu{number}");
        let mut put = |file: &str, text: String| tree.put(&format!("{folder}/{file}"), text);
        if let Some(capacity) = cpu.capacity {
            put("cpu_capacity", capacity.to_string());
        }
        if let Some(midr) = cpu.midr {
            put("regs/identification/midr_el1", format!("{midr:#x}"));
        }
        let siblings = set(&|other| (other.cluster, other.core) == (cpu.cluster, cpu.core));
        put("acpi_cppc/highest_perf", spec.perf[cpu.cluster].to_string());
        put("topology/core_cpus_list", siblings);
        put("topology/physical_package_id", cpu.cluster.to_string());
        let cluster = set(&|other| other.cluster == cpu.cluster);
        put("cache/index3/shared_cpu_list", cluster);
    }
    tree
}

/// The result, with each CPU's number put back.
fn found(machine: &Topology, back: impl Fn(u32) -> u32) -> Vec<Vec<CpuSet>> {
    let back = |set: &CpuSet| set.iter().map(&back).collect::<CpuSet>();
    let groups = |sets: Vec<CpuSet>| {
        let mut sets: Vec<CpuSet> = sets.iter().map(back).collect();
        sets.sort_by_key(CpuSet::first);
        sets
    };
    let classes = machine.classes().iter().map(|class| back(&class.cpus));
    vec![
        classes.collect(),
        groups(machine.cores()),
        groups(machine.caches()),
        groups(machine.nodes()),
        vec![
            back(&machine.limits().online),
            back(&machine.fast(machine.allowed())),
        ],
    ]
}

/// Numbers in any order.
fn shuffled() -> impl Strategy<Value = Vec<u32>> {
    Just((0..300).collect::<Vec<u32>>()).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Goal: permuting the numbers of CPUs permutes the answer and changes nothing else. Method: machines
    /// made up, once with the numbers 0, 1, 2 … and once with others.
    #[test]
    fn numbers_of_cpus_mean_nothing(spec in specs(), others in shuffled()) {
        let plain: Vec<u32> = (0..spec.cpus.len() as u32).collect();
        let expected = detect(&tree(&spec, &plain));
        let got = detect(&tree(&spec, &others[..plain.len()]));
        let place = |number: u32| others.iter().position(|&other| other == number);
        let back = |number: u32| place(number).expect("one of them") as u32;
        prop_assert_eq!(found(&got, back), found(&expected, |number| number));
        prop_assert_eq!(got.witness(), expected.witness());
        prop_assert_eq!(got.confidence(), expected.confidence());
    }
}
