//! Which crate may depend on which. The direction of the edges is the direction of the data.

use super::tree::{Finding, Package, Tree};

/// The dependencies that one crate may have.
struct Row {
    name: &'static str,
    /// Crates of the workspace, as ordinary or build dependencies.
    may: &'static [&'static str],
    /// And for its tests, benches and examples.
    dev: &'static [&'static str],
    /// How many packages from outside, tests apart. Fewer in what users compile.
    outside: usize,
}

/// A crate that is not part of any product may use what it needs.
const ANY: usize = usize::MAX;

const EVENT: &str = "paceline-event";
const PLATFORM: &str = "paceline-platform";
const HINT: &str = "paceline-hint";
const PACELINE: &str = "paceline";
const CAPI: &str = "paceline-capi";
const POLICY: &str = "paceline-policy";
const SIM: &str = "paceline-sim";
const REPLAY: &str = "paceline-replay";
const FLEET: &str = "paceline-fleet";
const WORKLOAD: &str = "paceline-workload";
const MEASURE: &str = "paceline-measure";
const TRACE: &str = "paceline-trace";
const CONSOLE: &str = "paceline-console";
const CLI: &str = "paceline-cli";
const BENCH: &str = "paceline-bench";
const TESTKIT: &str = "paceline-testkit";
const TESTS: &str = "paceline-tests";
const ANYWHERE: &str = "paceline-anywhere";
const KERNEL: &str = "paceline-kernel";
const PROFILERS: &str = "paceline-profilers";
const RUNTIMES: &str = "paceline-runtimes";

const PRODUCT: &[&str] = &[
    EVENT, PLATFORM, PACELINE, POLICY, SIM, REPLAY, FLEET, WORKLOAD, MEASURE, TRACE, CONSOLE,
];

/// The crates in data-flow order. A crate that is not here is an error: it gets its row together with its
/// reason in ARCHITECTURE.md. So is a row without a crate: what is to come is no fact yet.
const TABLE: &[Row] = &[
    Row {
        name: EVENT,
        may: &[],
        dev: &[],
        outside: 0,
    },
    Row {
        name: PLATFORM,
        may: &[EVENT],
        dev: &[TESTKIT, SIM],
        outside: 2,
    },
    // Schedulers, which need nothing else of the job system, depend on it.
    Row {
        name: HINT,
        may: &[EVENT, PLATFORM],
        dev: &[TESTKIT, SIM],
        outside: 1,
    },
    Row {
        name: TRACE,
        may: &[EVENT],
        dev: &[TESTKIT, SIM],
        outside: ANY,
    },
    Row {
        name: PACELINE,
        may: &[EVENT, PLATFORM, HINT, TRACE],
        dev: &[TESTKIT, SIM],
        outside: 2,
    },
    // A face: nothing in Rust depends on it.
    Row {
        name: CAPI,
        may: &[PACELINE],
        dev: &[],
        outside: 0,
    },
    Row {
        name: POLICY,
        may: &[EVENT],
        dev: &[TESTKIT, SIM],
        outside: 0,
    },
    Row {
        name: SIM,
        may: &[EVENT, PLATFORM, POLICY],
        dev: &[TESTKIT, SIM],
        outside: 4,
    },
    // Where recordings meet the simulator: neither knows the other.
    Row {
        name: REPLAY,
        may: &[EVENT, POLICY, SIM, TRACE],
        dev: &[TESTKIT, SIM],
        outside: 0,
    },
    // It knows no simulator: what runs a point is its caller's.
    Row {
        name: FLEET,
        may: &[EVENT, PLATFORM, PACELINE, TRACE],
        dev: &[TESTKIT],
        outside: ANY,
    },
    Row {
        name: WORKLOAD,
        may: &[EVENT, PLATFORM, PACELINE],
        dev: &[TESTKIT, SIM],
        outside: ANY,
    },
    Row {
        name: MEASURE,
        may: &[EVENT, PLATFORM, WORKLOAD],
        dev: &[TESTKIT, SIM],
        outside: ANY,
    },
    Row {
        name: CONSOLE,
        may: &[EVENT, PLATFORM, PACELINE, TRACE],
        dev: &[TESTKIT, SIM],
        outside: ANY,
    },
    Row {
        name: CLI,
        may: PRODUCT,
        dev: &[TESTKIT, SIM],
        outside: ANY,
    },
    // Nothing depends on it: the peers are its alone.
    Row {
        name: BENCH,
        may: PRODUCT,
        dev: &[TESTKIT, SIM],
        outside: ANY,
    },
    Row {
        name: TESTKIT,
        may: &[EVENT, PLATFORM, PACELINE, POLICY, SIM],
        dev: &[],
        outside: ANY,
    },
    Row {
        name: TESTS,
        may: &[
            CAPI, EVENT, PLATFORM, HINT, PACELINE, POLICY, SIM, WORKLOAD, MEASURE, TRACE, TESTKIT,
        ],
        dev: &[
            CAPI, EVENT, PLATFORM, HINT, PACELINE, POLICY, SIM, WORKLOAD, MEASURE, TRACE, TESTKIT,
        ],
        outside: ANY,
    },
    // It builds for systems on which little else does.
    Row {
        name: ANYWHERE,
        may: &[PLATFORM, PACELINE],
        dev: &[],
        outside: 0,
    },
    // What schedulers are measured with, a program beside them.
    Row {
        name: KERNEL,
        may: &[PACELINE],
        dev: &[],
        outside: ANY,
    },
    // Not examples of crate paceline: its tests do not build other programs' profilers.
    Row {
        name: PROFILERS,
        may: &[PACELINE],
        dev: &[],
        outside: ANY,
    },
    // Nor an async runtime.
    Row {
        name: RUNTIMES,
        may: &[PACELINE],
        dev: &[],
        outside: ANY,
    },
    Row {
        name: "xtask",
        may: &[],
        dev: &[],
        outside: ANY,
    },
];

/// Rule "edges": crates depend on each other as [`TABLE`] allows.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let ours: Vec<&str> = tree
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let gone = TABLE.iter().filter(|row| !ours.contains(&row.name));
    let gone = gone.map(|row| Finding {
        place: row.name.to_owned(),
        line: 0,
        message: "has a row in xtask/src/tidy/edges.rs and is no crate".to_owned(),
    });
    let packages = tree.packages.iter();
    packages
        .flat_map(|package| of_package(package, &ours))
        .chain(gone)
        .collect()
}

fn of_package(package: &Package, ours: &[&str]) -> Vec<Finding> {
    let finding = |message: String| Finding {
        place: package.name.clone(),
        line: 0,
        message,
    };
    let Some(row) = TABLE.iter().find(|row| row.name == package.name) else {
        return vec![finding(
            "this crate has no row in xtask/src/tidy/edges.rs".to_owned(),
        )];
    };
    let mut findings = Vec::new();
    let mut outside = Vec::new();
    for dependency in &package.dependencies {
        let name = dependency.name.as_str();
        if ours.contains(&name) {
            let allowed = row.may.contains(&name) || (dependency.dev && row.dev.contains(&name));
            if !allowed {
                let kind = if dependency.dev { " for tests" } else { "" };
                findings.push(finding(format!("may not depend on {name}{kind}")));
            }
        } else if !dependency.dev && !outside.contains(&name) {
            outside.push(name);
        }
    }
    if outside.len() > row.outside {
        let names = outside.join(", ");
        let message = format!("has {} outside dependencies ({names})", outside.len());
        findings.push(finding(format!("{message}, allowed are {}", row.outside)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Dependency, shown};
    use super::*;

    fn package(name: &str, normal: &[&str], dev: &[&str]) -> Package {
        let line = |dev: bool| {
            move |name: &&str| Dependency {
                name: (*name).to_owned(),
                dev,
            }
        };
        let dependencies = normal
            .iter()
            .map(line(false))
            .chain(dev.iter().map(line(true)));
        Package {
            name: name.to_owned(),
            folder: String::new(),
            is_published: false,
            libraries: Vec::new(),
            dependencies: dependencies.collect(),
        }
    }

    fn found(packages: Vec<Package>) -> Vec<String> {
        let mut tree = Tree::of(&[]);
        tree.packages = packages;
        shown(&check(&tree))
    }

    /// A tree in which every crate of the table is present, and one more package.
    fn with_all(extra: Package) -> Vec<String> {
        let present = TABLE.iter().filter(|row| row.name != extra.name);
        let mut packages: Vec<_> = present.map(|row| package(row.name, &[], &[])).collect();
        packages.push(extra);
        found(packages)
    }

    #[test]
    fn edges_of_the_table_are_fine() {
        assert!(with_all(package(PACELINE, &[EVENT, PLATFORM], &[TESTKIT])).is_empty());
    }

    #[test]
    fn the_edges_that_must_never_be_are_refused() {
        for (from, to) in [(PACELINE, SIM), (SIM, PACELINE), (TRACE, PLATFORM)] {
            let expected = [format!("{from}: may not depend on {to}")];
            assert_eq!(with_all(package(from, &[to], &[])), expected);
        }
        for row in TABLE.iter().filter(|row| row.name != CLI) {
            assert_eq!(
                with_all(package(row.name, &[CLI], &[])).len(),
                1,
                "{}",
                row.name
            );
            assert_eq!(
                with_all(package(row.name, &[], &[CLI])).len(),
                1,
                "{}",
                row.name
            );
        }
    }

    /// The test kit is for tests: no crate but the tests' own may ship it.
    #[test]
    fn the_test_kit_is_for_tests_only() {
        let expected = ["paceline: may not depend on paceline-testkit"];
        assert_eq!(with_all(package(PACELINE, &[TESTKIT], &[])), expected);
        for row in TABLE.iter().filter(|row| row.name != TESTS) {
            assert!(!row.may.contains(&TESTKIT), "{}", row.name);
        }
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        let expected = ["paceline-new: this crate has no row in xtask/src/tidy/edges.rs"];
        assert_eq!(with_all(package("paceline-new", &[], &[])), expected);
    }

    /// Goal: the table has no row for what is no crate. Method: a workspace that lacks one.
    #[test]
    fn a_row_needs_its_crate() {
        let present = TABLE.iter().filter(|row| row.name != SIM);
        let packages = present.map(|row| package(row.name, &[], &[])).collect();
        let expected = ["paceline-sim: has a row in xtask/src/tidy/edges.rs and is no crate"];
        assert_eq!(found(packages), expected);
    }

    #[test]
    fn outside_dependencies_are_few() {
        let expected = ["paceline-event: has 1 outside dependencies (serde), allowed are 0"];
        assert_eq!(
            with_all(package(EVENT, &["serde"], &["proptest"])),
            expected
        );
    }

    /// A row may only look back: then there is no cycle, and the order is the data's.
    #[test]
    fn the_table_is_in_data_flow_order() {
        for (index, row) in TABLE.iter().enumerate() {
            for name in row.may {
                assert!(
                    TABLE[..index].iter().any(|earlier| earlier.name == *name),
                    "{name}"
                );
            }
        }
    }
}
