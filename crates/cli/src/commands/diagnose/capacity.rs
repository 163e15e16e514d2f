//! `--capacity 0-3=446,4-7=1024`: how fast CPUs are, which no trace says.

use std::collections::BTreeMap;

use event::Cpu;

/// The fastest CPU of a machine.
const MOST: u32 = 1024;
/// More CPUs than any kernel has.
const CPUS_MAX: u32 = 8192;

/// Capacities by CPU.
pub(super) type Capacities = BTreeMap<Cpu, u32>;

/// Reads capacities.
///
/// # Errors
/// Says which part of the text is wrong, and why.
pub(super) fn read(text: &str) -> Result<Capacities, String> {
    let mut capacities = Capacities::new();
    for part in text.split(',') {
        let wrong = |why: &str| format!("in {part:?}: {why}; write it as 0-3=446,4-7=1024");
        let (cpus, capacity) = part
            .split_once('=')
            .ok_or_else(|| wrong("there is no '='"))?;
        let capacity = number(capacity)
            .filter(|capacity| (1..=MOST).contains(capacity))
            .ok_or_else(|| wrong("a capacity is a number from 1 to 1024"))?;
        let (first, last) = cpus.split_once('-').unwrap_or((cpus, cpus));
        let (first, last) = number(first)
            .zip(number(last))
            .ok_or_else(|| wrong("CPUs are numbers such as 0 or 0-3"))?;
        if last < first || last >= CPUS_MAX {
            return Err(wrong("CPUs are from the lowest to the highest, below 8192"));
        }
        for cpu in first..=last {
            if capacities.insert(Cpu(cpu), capacity).is_some() {
                return Err(wrong("a CPU is given twice"));
            }
        }
    }
    Ok(capacities)
}

fn number(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: lists of CPUs and ranges of them get their capacities. Method: both, with blanks.
    #[test]
    fn ranges_and_single_cpus_are_read() {
        let read = read("0-2=446, 7 = 1024").unwrap();
        let all: Vec<_> = read.into_iter().map(|(cpu, of)| (cpu.0, of)).collect();
        assert_eq!(all, [(0, 446), (1, 446), (2, 446), (7, 1024)]);
    }

    /// Goal: an error names the wrong part and its place. Method: each thing that can be wrong.
    #[test]
    fn errors_say_where() {
        for (text, part, why) in [
            ("", "\"\"", "no '='"),
            ("0=1,1", "\"1\"", "no '='"),
            ("0-3=fast", "\"0-3=fast\"", "from 1 to 1024"),
            ("0=0", "\"0=0\"", "from 1 to 1024"),
            ("0=1025", "\"0=1025\"", "from 1 to 1024"),
            ("0=446,a-b=1024", "\"a-b=1024\"", "0-3"),
            ("3-0=446", "\"3-0=446\"", "lowest to the highest"),
            ("0-9999=446", "\"0-9999=446\"", "below 8192"),
            ("0-3=446,3=1024", "\"3=1024\"", "twice"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.contains(part) && error.contains(why),
                "{text}: {error}"
            );
        }
    }
}
