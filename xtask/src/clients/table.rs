//! What programs print that do the same on two pools, and the table of it.

use std::collections::BTreeMap;

/// More than so many threads that want to run, and the machine is not quiet.
const QUIET: f64 = 0.5;

/// What a program did on one pool.
#[derive(Default)]
pub(super) struct Ran {
    digests: Vec<String>,
    /// The time of each step, in nanoseconds.
    times: Vec<f64>,
}

/// By the programs' names: what they did on their own pool, and on ours.
pub(super) type Measured = BTreeMap<String, [Ran; 2]>;

/// Notes a line of a program's: its name, a digest, times.
pub(super) fn take(line: &str, pool: usize, measured: &mut Measured) -> Option<()> {
    let mut words = line.split(' ');
    let (name, digest) = (words.next()?, words.next()?);
    let times: Result<Vec<f64>, _> = words.map(str::parse::<f64>).collect();
    let ran = measured.entry(name.to_owned()).or_default().get_mut(pool)?;
    ran.digests.push(digest.to_owned());
    ran.times
        .extend(times.ok().filter(|times| !times.is_empty())?);
    Some(())
}

/// Prints the table, and returns whether all digests of each program are equal.
pub(super) fn print(own_pool: &str, measured: &mut Measured) -> bool {
    let own_pool = format!("{own_pool} ms (quarters)");
    println!(
        "program      same   {own_pool:<25} Paceline ms (quarters)    ratio  of p99  of means"
    );
    let (mut all_same, mut logarithms) = (true, [0.0; 3]);
    for (name, [own, ours]) in measured.iter_mut() {
        let mut digests = own.digests.iter().chain(&ours.digests);
        let first = digests.next().cloned();
        let same = digests.all(|digest| Some(digest) == first.as_ref());
        all_same &= same;
        let [own, ours] = [own, ours].map(|ran| spread(&mut ran.times));
        let ratios = [1, 3, 4].map(|at| ours[at] / own[at]);
        for (sum, ratio) in logarithms.iter_mut().zip(ratios) {
            *sum += ratio.ln();
        }
        let shown = [own, ours].map(|[low, middle, high, ..]| {
            let text = format!("{:.3} ({:.3}–{:.3})", middle / 1e6, low / 1e6, high / 1e6);
            format!("{text:<25}")
        });
        let word = if same { "yes" } else { "NO" };
        let [middle, tail, mean] = ratios;
        println!(
            "{name:<12} {word:<6} {} {} {middle:.2}   {tail:.2}    {mean:.2}",
            shown[0], shown[1]
        );
    }
    let [middle, tail, mean] = logarithms.map(|sum| (sum / measured.len().max(1) as f64).exp());
    println!(
        "geometric mean of the ratios of medians: {middle:.3}, of the 99th of a hundred: {tail:.3}, \
         of means: {mean:.3}"
    );
    all_same
}

/// The quarters' borders, the time that one step in a hundred exceeds, and the mean.
fn spread(times: &mut [f64]) -> [f64; 5] {
    times.sort_by(f64::total_cmp);
    let at = |percent| times[(times.len() - 1) * percent / 100];
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    [at(25), at(50), at(75), at(99), mean]
}

/// What the machine was doing, from before to now.
pub(super) fn say_load(before: Option<f64>) {
    match before.zip(load()) {
        Some((before, _)) if before <= QUIET => println!("the machine was quiet (load {before})"),
        Some((before, after)) => println!(
            "the machine was not quiet (load {before} before, {after} after): the times do not count"
        ),
        None => println!("it is not known whether the machine was quiet"),
    }
}

/// How many threads want to run, on average over the last minute.
pub(super) fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: results of both pools come together, and a different digest is found. Method: lines as the
    /// program prints them.
    #[test]
    fn results_come_together() {
        let mut measured = Measured::new();
        for (line, core) in [("life ab 4 1 3", 0), ("life ab 2 2", 1), ("join cd 1", 0)] {
            assert_eq!(take(line, core, &mut measured), Some(()));
        }
        assert_eq!(
            spread(&mut measured.get_mut("life").unwrap()[0].times),
            [1.0, 3.0, 3.0, 3.0, 8.0 / 3.0]
        );
        take("join ce 1", 1, &mut measured).unwrap();
        assert!(!print("own", &mut measured));
        assert_eq!(take("nothing", 0, &mut measured), None);
        assert_eq!(take("life ab x", 0, &mut measured), None);
    }
}
