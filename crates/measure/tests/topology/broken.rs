//! Trees with something missing or wrong: there is always an answer, and never one with fewer CPUs than
//! before.

use std::cell::RefCell;
use std::collections::BTreeSet;

use platform::topology::detect::{Source, Tree, detect};
use platform::{Plan, Topology};

use crate::Machine;

/// A tree with something else in the place of some of its files.
struct Changed<'a> {
    tree: &'a Tree,
    /// The result for the changed files; none if they are gone.
    bytes: Option<Vec<u8>>,
    which: &'a dyn Fn(&str) -> bool,
}

impl Source for Changed<'_> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        if (self.which)(path) {
            self.bytes.clone()
        } else {
            self.tree.read(path)
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.tree.names(folder)
    }
}

/// A tree that remembers which of its files are looked at.
struct Watched<'a> {
    tree: &'a Tree,
    paths: RefCell<BTreeSet<String>>,
}

impl Source for Watched<'_> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let bytes = self.tree.read(path)?;
        self.paths.borrow_mut().insert(path.to_owned());
        Some(bytes)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.tree.names(folder)
    }
}

/// The files that decide about a machine.
fn files_of(tree: &Tree) -> Vec<String> {
    let watched = Watched {
        tree,
        paths: RefCell::default(),
    };
    detect(&watched);
    watched.paths.into_inner().into_iter().collect()
}

/// The path without its numbers: files of one kind have the same.
fn kind_of(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Numbers that look random and are the same in every run (Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// Possible content of a broken file: a few bytes, or that of another file.
    fn garbage(&mut self) -> Vec<u8> {
        const WORDS: [&str; 12] = [
            "",
            "\n",
            "0",
            "-1",
            "garbage",
            "99999999999999999999",
            "0-",
            "7-3",
            "(null)",
            "0x",
            "max",
            ",,,",
        ];
        match self.below(2) {
            0 => WORDS[self.below(WORDS.len())].into(),
            _ => (0..self.below(40)).map(|_| self.below(256) as u8).collect(),
        }
    }
}

/// Checks that every answer has to pass.
fn check_sound(what: &str, found: &Topology) {
    let usable = found.limits().usable();
    let fast = found.fast(&usable);
    assert!(found.effective_parallelism() >= 1, "{what}");
    assert!(!usable.is_empty() && fast.is_subset(&usable), "{what}");
    assert!(fast.len() >= usable.len().div_ceil(2).min(4), "{what}");
    let classes: usize = found.classes().iter().map(|class| class.cpus.len()).sum();
    assert_eq!(
        classes,
        found.limits().online.len(),
        "{what}: each CPU has one class"
    );
    let workers = found.effective_parallelism();
    let plan = Plan::new(found, found.limits(), workers);
    assert_eq!(plan.workers.len(), workers, "{what}");
    assert!(
        plan.workers.iter().all(|worker| !worker.cpus.is_empty()),
        "{what}"
    );
}

/// Files whose loss or damage takes the only word about how many CPUs there are.
fn is_only_word(machine: &Machine, path: &str) -> bool {
    machine.id == "asm-no-sysfs-cpuinfo-only" && path == "proc/cpuinfo"
}

/// Goal: no file is needed, and none is missed so much that workers are lost. Method: of each tree some of
/// the files that decide about it are taken away, one at a time, and then all of a kind.
#[test]
fn a_missing_file_costs_no_worker() {
    let mut dice = Dice(1);
    for machine in Machine::all() {
        let files = files_of(&machine.tree);
        let whole = detect(&machine.tree).effective_parallelism();
        let few = if files.len() > 1_000 { 1 } else { 4 };
        for round in 0..few * 2 {
            let path = &files[dice.below(files.len())];
            let kind = kind_of(path);
            let alone = |other: &str| other == path;
            let all = |other: &str| kind_of(other) == kind;
            let broken = Changed {
                tree: &machine.tree,
                bytes: None,
                which: if round < few { &alone } else { &all },
            };
            let found = detect(&broken);
            let what = format!("{} without {path}", machine.id);
            check_sound(&what, &found);
            let enough = found.effective_parallelism() >= whole;
            assert!(enough || is_only_word(machine, path), "{what}: {found:?}");
        }
    }
}

/// Goal: whatever stands in a file, there is an answer; and only a file about CPUs that may be used can
/// take any away. Method: as above, with random bytes and likely nonsense in place of the file's.
#[test]
fn garbage_in_a_file_costs_no_worker() {
    let mut dice = Dice(2);
    for machine in Machine::all() {
        let files = files_of(&machine.tree);
        let whole = detect(&machine.tree).effective_parallelism();
        for _ in 0..if files.len() > 1_000 { 2 } else { 6 } {
            let path = &files[dice.below(files.len())];
            let alone = |other: &str| other == path;
            let bytes = dice.garbage();
            let what = format!(
                "{} with {:?} in {path}",
                machine.id,
                String::from_utf8_lossy(&bytes)
            );
            let broken = Changed {
                tree: &machine.tree,
                bytes: Some(bytes),
                which: &alone,
            };
            let found = detect(&broken);
            check_sound(&what, &found);
            // These may by chance say something that a kernel would say.
            let speaks_of_limits = !path.starts_with("sys/devices/system/cpu/cpu");
            let enough = found.effective_parallelism() >= whole;
            assert!(enough || speaks_of_limits, "{what}: {found:?}");
        }
    }
}
