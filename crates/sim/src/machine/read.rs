//! From a machine file's tables to a machine: values that need each other must be there and fit.

use event::Nanos;
use policy::Placement;

use super::file::{
    BetweenTable, ClusterTable, File, GovernorName, IdleTable, KernelTable, LinesTable,
    PlacementName, ThermalTable,
};
use super::given::{Facts, Given};
use super::{
    Between, Cluster, CpuSpec, Governor, IdleState, KernelSpec, LineCosts, Machine, OperatingPoint,
    Thermal, Tic, layout,
};
use crate::quantity::{Kind, Of, Time};

const CLUSTERS_MAX: usize = 16;
const IDLE_STATES_MAX: usize = 16;

pub(super) fn machine(file: &File) -> Result<Machine, String> {
    let mut facts = Facts::new(&file.sources)?;
    if !is_name(&file.name) {
        return Err("name: use small letters, digits and hyphens".into());
    }
    if file.cluster.is_empty() || file.cluster.len() > CLUSTERS_MAX {
        return Err(format!(
            "cluster: there are 1 to {CLUSTERS_MAX} of them, each a [[cluster]]"
        ));
    }
    let names: Vec<String> = file
        .cluster
        .iter()
        .map(|cluster| cluster.name.clone())
        .collect();
    for (index, name) in names.iter().enumerate() {
        if !is_name(name) || names[..index].contains(name) {
            return Err(format!(
                "cluster.{name}: give each a name of its own, in small letters"
            ));
        }
    }
    let tic = file
        .tic
        .as_ref()
        .map(|given| facts.take("tic", given))
        .transpose()?;
    let cpus = layout::places(&file.layout, &file.cluster, &mut facts)?;
    let kernel = kernel(&file.kernel, &mut facts)?;
    let (lines, between) = lines(&file.lines, &names, &cpus, &mut facts)?;
    let clusters: Result<Vec<Cluster>, String> = file
        .cluster
        .iter()
        .map(|table| cluster(table, &mut facts))
        .collect();
    let clusters = clusters?;
    for (number, cluster) in clusters.iter().enumerate() {
        let is_here = |cpu: &&CpuSpec| cpu.cluster as usize == number;
        let mut cores: Vec<u32> = cpus.iter().filter(is_here).map(|cpu| cpu.core).collect();
        cores.sort_unstable();
        let shared = cores.windows(2).any(|pair| pair[0] == pair[1]);
        if shared == cluster.smt_percent.is_empty() {
            return Err(format!(
                "cluster.{}.smt-share: belongs to clusters with more than one thread a core, and only there",
                cluster.name
            ));
        }
    }
    if clusters.iter().map(|cluster| cluster.capacity).max() != Some(1024) {
        return Err("cluster.*.capacity: that of the fastest cluster is 1024".into());
    }
    Ok(Machine {
        name: file.name.clone(),
        about: file.about.clone(),
        cpus,
        clusters,
        lines,
        between,
        kernel,
        tic: tic.map(|tic| Tic {
            nanos: tic.0,
            tics: tic.1,
        }),
        facts: facts.finish()?,
    })
}

fn is_name(name: &str) -> bool {
    let is_fine = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=40).contains(&name.len()) && name.bytes().all(is_fine)
}

fn kernel(table: &KernelTable, facts: &mut Facts<'_>) -> Result<KernelSpec, String> {
    let mut time = |key: &str, given| take(facts, &format!("kernel.{key}"), given).map(Nanos);
    Ok(KernelSpec {
        tick: time("tick", &table.tick)?,
        syscall: time("syscall", &table.syscall)?,
        yields: time("yields", &table.yields)?,
        switch: time("switch", &table.switch)?,
        wake: time("wake", &table.wake)?,
        ipi_send: time("ipi-send", &table.ipi_send)?,
        ipi_deliver: time("ipi-deliver", &table.ipi_deliver)?,
        tick_cost: time("tick-cost", &table.tick_cost)?,
        migrate: time("migrate", &table.migrate)?,
        clock: time("clock", &table.clock)?,
        message: time("message", &table.message)?,
        placement: match facts.take("kernel.placement", &table.placement)? {
            PlacementName::Mainline => Placement::Mainline,
            PlacementName::Pack => Placement::Pack,
        },
    })
}

/// The costs of lines. Each cost that can occur on this machine must be given.
fn lines(
    table: &LinesTable,
    clusters: &[String],
    cpus: &[CpuSpec],
    facts: &mut Facts<'_>,
) -> Result<(LineCosts, Vec<Between>), String> {
    let between = pairs(table, clusters, facts)?;
    let named = |a: &CpuSpec, b: &CpuSpec| {
        between
            .iter()
            .any(|between| between.is_of((a.cluster, b.cluster)))
    };
    let any =
        |share: fn(&CpuSpec, &CpuSpec) -> bool| any_two(cpus, |a, b| share(a, b) && !named(a, b));
    let has_siblings = any_two(cpus, |a, b| a.core == b.core);
    let has_modules = any_two(cpus, |a, b| a.module == b.module && a.core != b.core);
    let mut time = |key: &str, given: Option<&Given<Of<Time>>>, needed: bool| {
        let key = format!("lines.{key}");
        match given {
            Some(given) => take(facts, &key, given).map(Nanos),
            None if needed => Err(format!("{key}: is missing, and there are such CPUs")),
            None => Ok(Nanos::ZERO),
        }
    };
    let costs = LineCosts {
        hit: time("hit", Some(&table.hit), true)?,
        rmw: time("rmw", Some(&table.rmw), true)?,
        core: time("core", table.core.as_ref(), has_siblings)?,
        module: time("module", table.module.as_ref(), has_modules)?,
        cache: time(
            "cache",
            table.cache.as_ref(),
            any(|a, b| a.cache == b.cache && a.module != b.module),
        )?,
        node: time(
            "node",
            table.node.as_ref(),
            any(|a, b| a.node == b.node && a.cache != b.cache),
        )?,
        remote: time(
            "remote",
            table.remote.as_ref(),
            any(|a, b| a.node != b.node),
        )?,
        queued_percent: match &table.queued {
            Some(given) => take(facts, "lines.queued", given)? as u32,
            None => 0,
        },
    };
    if costs == LineCosts::default() && !between.is_empty() {
        return Err(
            "lines.hit: is 0, which makes all lines free, in spite of lines.between".into(),
        );
    }
    Ok((costs, between))
}

/// Whether this is so for two CPUs of the list.
fn any_two(cpus: &[CpuSpec], is_so: impl Fn(&CpuSpec, &CpuSpec) -> bool) -> bool {
    let with_one_before = |(index, a): (usize, &CpuSpec)| cpus[..index].iter().any(|b| is_so(a, b));
    cpus.iter().enumerate().any(with_one_before)
}

/// The costs between pairs of clusters, each pair once.
fn pairs(
    table: &LinesTable,
    clusters: &[String],
    facts: &mut Facts<'_>,
) -> Result<Vec<Between>, String> {
    let mut between: Vec<Between> = Vec::new();
    for table in &table.between {
        let pair = pair(table, clusters, facts)?;
        if between.iter().any(|other| other.is_of(pair.clusters)) {
            let (a, b) = &table.clusters;
            return Err(format!(
                "lines.between.{a}.{b}: is there twice; leave one out"
            ));
        }
        between.push(pair);
    }
    Ok(between)
}

fn pair(table: &BetweenTable, names: &[String], facts: &mut Facts<'_>) -> Result<Between, String> {
    let (a, b) = &table.clusters;
    let key = format!("lines.between.{a}.{b}");
    let number = |name: &String| {
        names
            .iter()
            .position(|other| other == name)
            .map(|it| it as u32)
    };
    let (Some(one), Some(two)) = (number(a), number(b)) else {
        let names = names.join(", ");
        return Err(format!("{key}: name two of the clusters: {names}"));
    };
    Ok(Between {
        clusters: (one, two),
        takes: Nanos(take(facts, &key, &table.takes)?),
    })
}

fn cluster(table: &ClusterTable, facts: &mut Facts<'_>) -> Result<Cluster, String> {
    let name = table.name.clone();
    let key = |what: &str| format!("cluster.{name}.{what}");
    let capacity = *facts.take(&key("capacity"), &table.capacity)?;
    if !(1..=1024).contains(&capacity) {
        return Err(format!(
            "{}: is {capacity}; it goes from 1 to 1024",
            key("capacity")
        ));
    }
    let smt = table
        .smt_share
        .as_ref()
        .map(|given| facts.take(&key("smt-share"), given))
        .transpose()?;
    let smt = smt.map_or(&[][..], |smt| &smt.0);
    let smt_percent: Vec<u32> = smt.iter().map(|&percent| percent as u32).collect();
    if smt_percent.contains(&0) {
        return Err(format!(
            "{}: a thread is left with more than nothing",
            key("smt-share")
        ));
    }
    let khz = &facts.take(&key("points"), &table.points)?.0;
    if khz[0] == 0 || khz.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(format!(
            "{}: name them from slow to fast, each once",
            key("points")
        ));
    }
    let microwatts = power(table, khz, &key, facts)?;
    let point = |(khz, microwatts): (&u64, &u64)| OperatingPoint {
        khz: *khz as u32,
        microwatts: *microwatts,
    };
    let governor = governor(table, khz, &key, facts)?;
    let thermal = table
        .thermal
        .as_ref()
        .map(|table| thermal(table, &key("thermal"), facts))
        .transpose()?;
    Ok(Cluster {
        capacity,
        points: khz.iter().zip(&microwatts).map(point).collect(),
        governor,
        smt_percent,
        idle_states: idle_states(&table.idle, &key("idle"), facts)?,
        thermal,
        name,
    })
}

/// The power of each of the operating points.
fn power(
    table: &ClusterTable,
    khz: &[u64],
    key: &dyn Fn(&str) -> String,
    facts: &mut Facts<'_>,
) -> Result<Vec<u64>, String> {
    match (&table.power, &table.power_coefficient, &table.voltage) {
        (None, None, None) => Ok(vec![0; khz.len()]),
        (Some(power), None, None) => {
            let power = &facts.take(&key("power"), power)?.0;
            same_length(khz, power, &key("power"))?;
            Ok(power.clone())
        }
        (None, Some(coefficient), Some(voltage)) => {
            let coefficient = take(facts, &key("power-coefficient"), coefficient)?;
            let volts = &facts.take(&key("voltage"), voltage)?.0;
            same_length(khz, volts, &key("voltage"))?;
            let points = khz.iter().zip(volts);
            Ok(points
                .map(|(&khz, &volts)| dynamic_power(coefficient, khz, volts))
                .collect())
        }
        _ => Err(format!(
            "{}: give it, or else both power-coefficient and voltage, or none of them",
            key("power")
        )),
    }
}

fn governor(
    table: &ClusterTable,
    khz: &[u64],
    key: &dyn Fn(&str) -> String,
    facts: &mut Facts<'_>,
) -> Result<Governor, String> {
    let named = facts.take(&key("governor"), &table.governor)?;
    match (named, &table.fixed_at, &table.rate_limit, &table.half_life) {
        (GovernorName::Fixed, Some(at), None, None) => {
            let at = take(facts, &key("fixed-at"), at)?;
            let point = khz.iter().position(|&khz| khz == at);
            let point =
                point.ok_or_else(|| format!("{}: is none of the points", key("fixed-at")))?;
            Ok(Governor::Fixed {
                point: point as u32,
            })
        }
        (GovernorName::Schedutil, None, Some(limit), Some(half_life)) => Ok(Governor::Schedutil {
            rate_limit: Nanos(take(facts, &key("rate-limit"), limit)?),
            half_life: Nanos(positive(facts, &key("half-life"), half_life)?),
        }),
        (GovernorName::Fixed, ..) => Err(format!(
            "{}: `fixed` takes fixed-at, and nothing else",
            key("governor")
        )),
        (GovernorName::Schedutil, ..) => {
            let key = key("governor");
            Err(format!(
                "{key}: `schedutil` takes rate-limit and half-life, and nothing else"
            ))
        }
    }
}

fn same_length(points: &[u64], others: &[u64], key: &str) -> Result<(), String> {
    if points.len() == others.len() {
        Ok(())
    } else {
        Err(format!(
            "{key}: has {} numbers for {} points; give one for each",
            others.len(),
            points.len()
        ))
    }
}

/// The power by a kernel's energy model: coefficient times frequency times the square of the voltage.
fn dynamic_power(coefficient: u64, khz: u64, microvolts: u64) -> u64 {
    const UNIT: u128 = 1_000 * 1_000_000 * 1_000_000;
    let square = u128::from(microvolts) * u128::from(microvolts);
    let power = u128::from(coefficient) * u128::from(khz) * square;
    ((power + UNIT / 2) / UNIT) as u64
}

fn idle_states(
    tables: &[IdleTable],
    key: &str,
    facts: &mut Facts<'_>,
) -> Result<Vec<IdleState>, String> {
    if tables.len() > IDLE_STATES_MAX {
        return Err(format!(
            "{key}: there are {}; at most {IDLE_STATES_MAX}",
            tables.len()
        ));
    }
    let mut states: Vec<IdleState> = Vec::new();
    for table in tables {
        let key = format!("{key}.{}", table.name);
        let state = IdleState {
            residency: Nanos(take(facts, &format!("{key}.residency"), &table.residency)?),
            exit: Nanos(take(facts, &format!("{key}.exit"), &table.exit)?),
            microwatts: take(facts, &format!("{key}.power"), &table.power)?,
            name: table.name.clone(),
        };
        let is_next = match states.last() {
            None => state.residency == Nanos::ZERO,
            Some(last) => state.residency > last.residency && state.exit >= last.exit,
        };
        if !is_next {
            return Err(format!(
                "{key}: name states from light to deep: the first has residency 0, each further one a \
                 longer residency and no shorter exit"
            ));
        }
        states.push(state);
    }
    Ok(states)
}

fn thermal(table: &ThermalTable, key: &str, facts: &mut Facts<'_>) -> Result<Thermal, String> {
    let degrees = |value: u64| value as i64;
    let thermal = Thermal {
        ambient_millidegrees: degrees(take(facts, &format!("{key}.ambient"), &table.ambient)?),
        millidegrees_per_watt: degrees(take(
            facts,
            &format!("{key}.resistance"),
            &table.resistance,
        )?),
        time_constant: Nanos(positive(
            facts,
            &format!("{key}.time-constant"),
            &table.time_constant,
        )?),
        limit_millidegrees: degrees(take(facts, &format!("{key}.limit"), &table.limit)?),
        period: Nanos(positive(facts, &format!("{key}.period"), &table.period)?),
    };
    if thermal.limit_millidegrees > thermal.ambient_millidegrees {
        Ok(thermal)
    } else {
        Err(format!(
            "{key}.limit: has to be above the ambient temperature"
        ))
    }
}

fn take<K: Kind>(facts: &mut Facts<'_>, key: &str, given: &Given<Of<K>>) -> Result<u64, String> {
    facts.take(key, given).map(|quantity| quantity.0)
}

fn positive(facts: &mut Facts<'_>, key: &str, given: &Given<Of<Time>>) -> Result<u64, String> {
    match take(facts, key, given)? {
        0 => Err(format!("{key}: is 0; it has to be longer")),
        time => Ok(time),
    }
}
