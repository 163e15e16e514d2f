//! A machine drawn with boxes: packages, in these last-level caches, in these cores.
//!
//! A core is a bracket around the numbers of its CPUs, with the first letter of its class in front where
//! there are several classes: `[B 0 1]`. CPUs that may not be used are in parentheses. Parts that do not fit
//! beside each other go below each other.

use std::collections::BTreeMap;

use platform::{CpuPlace, Topology};

/// The machine in `columns` columns, if its brackets fit at all.
pub(super) fn machine(machine: &Topology, columns: usize) -> String {
    let mut packages = BTreeMap::<u32, Vec<&CpuPlace>>::new();
    for place in machine.places() {
        packages.entry(place.package).or_default().push(place);
    }
    let mut pictures = Vec::new();
    for (package, places) in packages {
        let mut inside = Vec::new();
        for (title, places) in caches(machine, &places) {
            let cores = cores(machine, &places);
            inside.push(boxed(&title, &folded(&cores, columns.saturating_sub(8))));
        }
        let title = match package {
            u32::MAX => "package".to_owned(),
            number => format!("package {number}"),
        };
        pictures.push(boxed(&title, &beside(inside, columns.saturating_sub(4))));
    }
    let lines = beside(pictures, columns);
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

/// The last-level caches of these CPUs, each with the text above it.
fn caches<'a>(machine: &Topology, places: &[&'a CpuPlace]) -> Vec<(String, Vec<&'a CpuPlace>)> {
    let mut groups = BTreeMap::<(u32, u32), Vec<&CpuPlace>>::new();
    for place in places {
        groups
            .entry((place.cache, place.node))
            .or_default()
            .push(place);
    }
    let several_nodes = machine.nodes().len() > 1;
    let titled = groups.into_iter().map(|((cache, node), places)| {
        let cache = match cache {
            u32::MAX => "cache unknown",
            _ => "cache",
        };
        let title = if several_nodes {
            format!("{cache}, node {node}")
        } else {
            cache.to_owned()
        };
        (title, places)
    });
    titled.collect()
}

/// The cores of these CPUs, as brackets of one width.
fn cores(machine: &Topology, places: &[&CpuPlace]) -> Vec<String> {
    let mut cores = BTreeMap::<u32, Vec<u32>>::new();
    for place in places {
        cores.entry(place.core).or_default().push(place.cpu);
    }
    let core = |cpus: &Vec<u32>| {
        let number = |cpu: &u32| {
            if machine.allowed().contains(*cpu) {
                cpu.to_string()
            } else {
                format!("({cpu})")
            }
        };
        let numbers: Vec<String> = cpus.iter().map(number).collect();
        let class = cpus.first().and_then(|&cpu| machine.class_of(cpu));
        match class.filter(|_| machine.classes().len() > 1) {
            Some(class) => format!("{} {}", letter(machine, class), numbers.join(" ")),
            None => numbers.join(" "),
        }
    };
    let cores: Vec<String> = cores.values().map(core).collect();
    let width = cores.iter().map(String::len).max().unwrap_or(0);
    let bracket = |core: &String| format!("[{core:width$}]");
    cores.iter().map(bracket).collect()
}

/// A letter for each class: that of its name, or a digit where several begin with it.
fn letter(machine: &Topology, class: usize) -> char {
    let classes = machine.classes();
    let first = |class: usize| classes[class].name.chars().next();
    let alike = (0..classes.len()).filter(|&other| first(other) == first(class));
    let letter = match alike.count() {
        1 => first(class),
        _ => char::from_digit(class as u32, 36),
    };
    letter.unwrap_or('?').to_ascii_uppercase()
}

/// Words in lines of at most `columns` columns; a power of two in each line, where that makes more than one.
fn folded(words: &[String], columns: usize) -> Vec<String> {
    let width = words.first().map_or(1, |word| word.len() + 1);
    let fitting = (columns / width).max(1);
    let in_a_line = if fitting >= words.len() {
        words.len().max(1)
    } else {
        1 << fitting.ilog2()
    };
    words.chunks(in_a_line).map(|line| line.join(" ")).collect()
}

/// Pictures beside each other as long as they fit, else below each other.
fn beside(pictures: Vec<Vec<String>>, columns: usize) -> Vec<String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for picture in pictures {
        let width = |picture: &[String]| picture.first().map_or(0, |line| line.chars().count());
        match rows.last_mut() {
            Some(row) if width(row) + 1 + width(&picture) <= columns => {
                let (left, right) = (width(row), width(&picture));
                for index in 0..row.len().max(picture.len()) {
                    let line = |lines: &[String], width: usize| {
                        lines
                            .get(index)
                            .cloned()
                            .unwrap_or_else(|| " ".repeat(width))
                    };
                    let joined = format!("{} {}", line(row, left), line(&picture, right));
                    match row.get_mut(index) {
                        Some(line) => *line = joined,
                        None => row.push(joined),
                    }
                }
            }
            _ => rows.push(picture),
        }
    }
    rows.concat()
}

/// Lines in a box with a title.
fn boxed(title: &str, lines: &[String]) -> Vec<String> {
    let width = |line: &String| line.chars().count();
    let inner = lines
        .iter()
        .map(width)
        .max()
        .unwrap_or(0)
        .max(title.chars().count());
    let rule = "─".repeat(inner - title.chars().count());
    let mut drawn = vec![format!("┌ {title} {rule}┐")];
    for line in lines {
        let blank = " ".repeat(inner - width(line));
        drawn.push(format!("│ {line}{blank} │"));
    }
    drawn.push(format!("└{}┘", "─".repeat(inner + 2)));
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: machines of any width stay within the columns, with every CPU once. Method: 256 CPUs in groups
    /// of sixteen; and one CPU in no column at all, which must not fail.
    #[test]
    fn wide_machines_fold() {
        let place = |cpu: u32| CpuPlace {
            cpu,
            core: cpu % 128,
            cache: cpu % 128 / 8,
            node: cpu % 128 / 64,
            package: cpu % 128 / 64,
        };
        let big = Topology::new((0..256).map(place).collect(), 256, String::new());
        for columns in [40, 80, 100, 200] {
            let drawn = machine(&big, columns);
            let widest = drawn.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{columns}: {widest:?}\n{drawn}");
            let is_digit = |c: char| !c.is_ascii_digit();
            let words = drawn.split(is_digit).filter(|word| !word.is_empty());
            // Each CPU, a number for each package, and for each of its caches the node's.
            assert_eq!(words.count(), 256 + 2 + 16, "{drawn}");
        }
        assert!(machine(&Topology::uniform(1), 0).contains("[0]"));
    }
}
