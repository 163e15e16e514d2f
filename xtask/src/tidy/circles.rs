//! Modules that use each other in a circle can only be read, or changed, together. A table says how large
//! the largest circle of each crate is, and how many arrows between its top-level modules run back up.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Modules, crates};
use super::tree::{Finding, Tree};

/// The circles of one crate. The numbers may only become less; where less is found, its row has to follow.
struct Row {
    name: &'static str,
    /// Modules in the largest circle. Up to [`SMALL`] it is a limit, above that what is there.
    circle: usize,
    /// Arrows between top-level modules that run against the best order of them.
    upward: usize,
}

/// A circle that fits a head.
const SMALL: usize = 4;

/// How many arrows of a circle a message shows.
const SHOWN: usize = 12;

const TABLE: &[Row] = &[
    Row {
        name: "event",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "platform",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "paceline",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "capi",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "policy",
        circle: 4,
        upward: 1,
    },
    Row {
        name: "sim",
        circle: 4,
        upward: 1,
    },
    Row {
        name: "replay",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "fleet",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "workload",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "measure",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "hint",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "trace",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "console",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "cli",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "bench",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "testkit",
        circle: 4,
        upward: 0,
    },
    Row {
        name: "scx",
        circle: 4,
        upward: 0,
    },
];

/// Rule "circles": no crate has larger circles, or more arrows back up, than [`TABLE`] says.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    against(tree, TABLE)
}

fn against(tree: &Tree, table: &[Row]) -> Vec<Finding> {
    let names = crates(tree);
    let mut findings = Vec::new();
    let mut say = |name: &str, message: String| {
        findings.push(Finding {
            place: format!("crates/{name}"),
            line: 0,
            message,
        });
    };
    for row in table.iter().filter(|row| !names.contains(row.name)) {
        say(
            row.name,
            "has a row in xtask/src/tidy/circles.rs and is no crate".to_owned(),
        );
    }
    for name in names {
        let Some(row) = table.iter().find(|row| row.name == name) else {
            say(name, "has no row in xtask/src/tidy/circles.rs".to_owned());
            continue;
        };
        let modules = Modules::of(tree, &format!("crates/{name}/src/"));
        let arrows: BTreeSet<(usize, usize)> = modules.arrows.keys().copied().collect();
        let circles = circles(modules.names.len(), &arrows);
        let largest = circles.iter().max_by_key(|circle| circle.len());
        let size = largest.map_or(0, Vec::len);
        if size > row.circle {
            let shown = largest.map(|circle| shown(&modules, circle));
            let shown = shown.unwrap_or_default();
            say(
                name,
                format!(
                    "{size} modules in a circle, at most {}: {shown}",
                    row.circle
                ),
            );
        } else if size < row.circle && row.circle > SMALL {
            say(
                name,
                format!("{size} modules in the largest circle: lower its row in tidy/circles.rs"),
            );
        }
        let upward = upward(&modules);
        if upward.len() > row.upward {
            let (count, most) = (upward.len(), row.upward);
            let shown = upward.join(", ");
            say(
                name,
                format!(
                    "{count} arrows between top-level modules run back up, at most {most}: {shown}"
                ),
            );
        } else if upward.len() < row.upward {
            let count = upward.len();
            say(
                name,
                format!("{count} arrows back up: lower its row in tidy/circles.rs"),
            );
        }
    }
    findings
}

/// Sets of nodes each of which leads to each other one, without those of one node.
fn circles(nodes: usize, arrows: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..nodes).map(|node| reached(node, arrows)).collect();
    let mut left: BTreeSet<usize> = (0..nodes).collect();
    let mut circles = Vec::new();
    while let Some(first) = left.pop_first() {
        let both = |other: &usize| reach[first].contains(other) && reach[*other].contains(&first);
        let circle: Vec<usize> = left.iter().copied().filter(both).collect();
        left.retain(|node| !circle.contains(node));
        if !circle.is_empty() {
            circles.push([&[first], &circle[..]].concat());
        }
    }
    circles
}

/// All nodes that arrows lead to from here.
fn reached(from: usize, arrows: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(node) = next.pop() {
        let targets = arrows.range((node, 0)..(node + 1, 0));
        next.extend(targets.map(|(_, to)| *to).filter(|to| reached.insert(*to)));
    }
    reached
}

/// Arrows inside of a circle, some of them, and where they come from.
fn shown(modules: &Modules, circle: &[usize]) -> String {
    let inside = |node: &usize| circle.contains(node);
    let arrows = modules
        .arrows
        .iter()
        .filter(|((from, to), _)| inside(from) && inside(to));
    let all: Vec<String> = arrows
        .map(|((from, to), (_, line, path))| {
            let (from, to) = (
                shown_name(&modules.names[*from]),
                shown_name(&modules.names[*to]),
            );
            format!("{from}:{line} → {to} ({path})")
        })
        .collect();
    let more = all.len().saturating_sub(SHOWN);
    let shown = all[..all.len().min(SHOWN)].join(", ");
    if more > 0 {
        format!("{shown} and {more} more arrows")
    } else {
        shown
    }
}

fn shown_name(name: &[String]) -> String {
    if name.is_empty() {
        "(root)".to_owned()
    } else {
        name.join("::")
    }
}

/// The arrows between top-level modules that run against the order in which the fewest do.
fn upward(modules: &Modules) -> Vec<String> {
    let room = |node: usize| modules.names[node].first().map_or("(root)", |name| name);
    let mut arrows: BTreeMap<(&str, &str), ()> = BTreeMap::new();
    for (from, to) in modules.arrows.keys() {
        if room(*from) != room(*to) {
            arrows.insert((room(*from), room(*to)), ());
        }
    }
    let names: BTreeSet<&str> = arrows.keys().flat_map(|(from, to)| [*from, *to]).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let number = |name: &str| names.binary_search(&name).unwrap_or(usize::MAX);
    let arrows: BTreeSet<(usize, usize)> = arrows
        .keys()
        .map(|(from, to)| (number(from), number(to)))
        .collect();
    let order = best_order(names.len(), &arrows);
    let against = arrows.iter().filter(|(from, to)| order[*from] > order[*to]);
    against
        .map(|(from, to)| format!("{} → {}", names[*from], names[*to]))
        .collect()
}

/// The place of each node in an order in which few arrows run backwards. The fewest of all would take too
/// long to find; equal sources give equal orders.
fn best_order(nodes: usize, arrows: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let begins = (0..nodes.max(1)).map(|first| (0..nodes).map(move |node| (first + node) % nodes));
    let orders = begins.map(|begin| improved(begin.collect(), arrows));
    let places = orders.map(|order| {
        let mut places = vec![0; nodes];
        for (place, node) in order.into_iter().enumerate() {
            places[node] = place;
        }
        places
    });
    let backward = |places: &Vec<usize>| {
        let against = arrows
            .iter()
            .filter(|(from, to)| places[*from] > places[*to]);
        against.count()
    };
    places.min_by_key(backward).unwrap_or_default()
}

/// An order after each node was moved to its best place, until no move helps.
fn improved(mut order: Vec<usize>, arrows: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut has_moved = true;
    while has_moved {
        has_moved = false;
        for node in 0..order.len() {
            let Some(now) = order.iter().position(|other| *other == node) else {
                continue;
            };
            order.remove(now);
            // In front all arrows into the node run backwards. Each node that it passes changes that.
            let mut cost = 0i64;
            let mut costs = vec![cost];
            for other in &order {
                cost += i64::from(arrows.contains(&(node, *other)));
                cost -= i64::from(arrows.contains(&(*other, node)));
                costs.push(cost);
            }
            let best = (0..costs.len()).min_by_key(|place| costs[*place]);
            let place = best.filter(|best| costs[*best] < costs[now]).unwrap_or(now);
            has_moved |= place != now;
            order.insert(place, node);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const LIB: &str = "crates/x/src/lib.rs";

    fn found(files: &[(&str, &str)], circle: usize, upward: usize) -> Vec<String> {
        let row = Row {
            name: "x",
            circle,
            upward,
        };
        shown(&against(&Tree::of(files), &[row]))
    }

    fn file(name: &str) -> String {
        format!("crates/x/src/{name}.rs")
    }

    /// A crate of these modules, each of which uses others by the paths given.
    fn of(modules: &[(&str, &str)], circle: usize, upward: usize) -> Vec<String> {
        let modules: Vec<_> = modules
            .iter()
            .map(|(name, text)| (file(name), *text))
            .collect();
        let files = modules.iter().map(|(path, text)| (&path[..], *text));
        found(&files.collect::<Vec<_>>(), circle, upward)
    }

    /// Goal: a circle above its limit is found, however the modules name each other. Method: three modules,
    /// by an import, by a path in code, through a re-export at the root.
    #[test]
    fn a_circle_is_found() {
        let modules = [
            ("lib", "mod a;\nmod b;\nmod c;\npub use c::C;\n"),
            ("a", "use crate::b::B;\npub struct A;\n"),
            ("b", "pub struct B(super::C);\n"),
            ("c", "pub struct C;\nfn f() -> crate::a::A {}\n"),
        ];
        let arrows = "a:1 → b (crate::b::B), b:1 → c (super::C), c:2 → a (crate::a::A)";
        let expected = [format!(
            "crates/x: 3 modules in a circle, at most 2: {arrows}"
        )];
        assert_eq!(of(&modules, 2, 1), expected);
        assert!(of(&modules, 3, 1).is_empty());
    }

    /// Goal: an arrow that runs back up is found. Method: two modules that use each other, and a row without
    /// any.
    #[test]
    fn an_arrow_back_up_is_found() {
        let modules = [
            ("a", "use crate::b::B;\npub struct A;\n"),
            ("b", "use crate::a::A;\npub struct B;\n"),
        ];
        let [finding] = &of(&modules, 2, 0)[..] else {
            panic!("one finding");
        };
        assert!(
            finding.starts_with(
                "crates/x: 1 arrows between top-level modules run back up, at most 0: "
            )
        );
    }

    /// Goal: what makes no circle is none. Method: tests, text, modules for tests, re-exports of a child that
    /// uses its parent, imports of other crates by the name of a module.
    #[test]
    fn what_makes_no_circle_is_none() {
        let modules = [
            ("lib", "mod a;\n#[cfg(test)]\nmod c;\n"),
            (
                "a",
                "use crate::b::B;\npub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}\n",
            ),
            (
                "b",
                "// crate::a::A\npub struct B(other::a::A);\n#[cfg(test)]\nuse crate::a::A;\n",
            ),
            ("c", "use crate::a::A;\nuse crate::b::B;\n"),
            ("d/mod", "mod e;\npub use e::E;\npub struct D;\n"),
            ("d/e", "use super::D;\npub struct E;\n"),
        ];
        assert!(of(&modules, 0, 0).is_empty());
    }

    /// Goal: a row follows what is there. Method: rows that allow too much, and one for no crate.
    #[test]
    fn a_row_may_only_become_less() {
        let lower = ["crates/x: 0 modules in the largest circle: lower its row in tidy/circles.rs"];
        assert_eq!(found(&[(LIB, "")], 5, 0), lower);
        assert!(found(&[(LIB, "")], 4, 0).is_empty());
        let lower = ["crates/x: 0 arrows back up: lower its row in tidy/circles.rs"];
        assert_eq!(found(&[(LIB, "")], 0, 1), lower);
        let gone = ["crates/x: has a row in xtask/src/tidy/circles.rs and is no crate"];
        assert_eq!(found(&[], 0, 0), gone);
        let tree = Tree::of(&[(LIB, "")]);
        let new = ["crates/x: has no row in xtask/src/tidy/circles.rs"];
        assert_eq!(shown(&against(&tree, &[])), new);
    }

    /// Goal: the order is the best one. Method: small graphs, against all orders.
    #[test]
    fn the_order_is_the_best() {
        const NODES: usize = 5;
        let all: Vec<(usize, usize)> = (0..NODES)
            .flat_map(|from| (0..NODES).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .collect();
        let mut orders = vec![vec![]];
        for _ in 0..NODES {
            let longer = orders.iter().flat_map(|order: &Vec<usize>| {
                let missing = (0..NODES).filter(|node| !order.contains(node));
                missing
                    .map(|node| [&order[..], &[node]].concat())
                    .collect::<Vec<_>>()
            });
            orders = longer.collect();
        }
        let mut worse = 0;
        for seed in 0..200u64 {
            let bits = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let arrows = all
                .iter()
                .enumerate()
                .filter(|(index, _)| bits >> index & 1 == 1);
            let arrows: BTreeSet<_> = arrows.map(|(_, arrow)| *arrow).collect();
            let backward = |places: &[usize]| {
                arrows
                    .iter()
                    .filter(|(from, to)| places[*from] > places[*to])
                    .count()
            };
            let best = orders
                .iter()
                .map(|places| backward(places))
                .min()
                .unwrap_or(0);
            worse += backward(&best_order(NODES, &arrows)) - best;
        }
        assert_eq!(worse, 0);
    }
}
