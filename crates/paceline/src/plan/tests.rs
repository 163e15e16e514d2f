//! Random graphs against brute force, and the texts of errors.

use std::ops::Range;

use super::*;
use crate::access::AccessKind::{self, Reads, Writes};

/// A stream of numbers that is a function of its seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
    }
}

#[track_caller]
fn node(name: &'static str) -> DeclaredNode {
    DeclaredNode {
        label: Label {
            name,
            site: std::panic::Location::caller(),
        },
        accesses: Vec::new(),
        is_auto: false,
    }
}

fn access(resource: u64, kind: AccessKind) -> Declared {
    Declared {
        resource,
        kind,
        part: 0..usize::MAX,
    }
}

fn edge(from: usize, to: usize) -> DeclaredEdge {
    DeclaredEdge {
        from,
        to,
        is_condition: false,
    }
}

const RESOURCES: usize = 3;
const NAMES: [&str; 9] = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];
/// Parts that are declared end before this item.
const ITEMS: usize = 5;

/// All of a resource, or a part of it, which may be empty.
fn random_part(random: &mut Random) -> Range<usize> {
    if random.below(2) == 0 {
        return Declared::WHOLE;
    }
    let (a, b) = (random.below(ITEMS), random.below(ITEMS));
    a.min(b)..a.max(b)
}

/// A graph of random nodes, edges and accesses. `back`: in how many of a hundred cases an edge leads to a
/// node that was declared before.
fn random_graph(random: &mut Random, back: usize, auto: usize) -> DeclaredGraph {
    let count = 1 + random.below(NAMES.len());
    let mut graph = DeclaredGraph {
        resources: vec!["a", "b", "c"],
        ..DeclaredGraph::default()
    };
    for name in &NAMES[..count] {
        let mut node = node(name);
        node.is_auto = random.below(100) < auto;
        for resource in (0..RESOURCES as u64).chain([0]) {
            let kind = match random.below(8) {
                0 => Writes,
                1 => Reads,
                _ => continue,
            };
            let part = random_part(random);
            node.accesses.push(Declared {
                part,
                ..access(resource, kind)
            });
        }
        graph.nodes.push(node);
    }
    for _ in 0..random.below(2 * count) {
        let (a, b) = (random.below(count), random.below(count));
        let (from, to) = (a.min(b), a.max(b));
        if a == b || random.below(100) < back {
            graph.edges.push(edge(to, from));
        } else {
            graph.edges.push(edge(from, to));
        }
    }
    graph
}

/// All pairs in order, by trying every way: whether `to` comes after `from`.
fn closure(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut after = vec![vec![false; nodes]; nodes];
    for &(from, to) in edges {
        after[from][to] = true;
    }
    for via in 0..nodes {
        for from in 0..nodes {
            for to in 0..nodes {
                after[from][to] |= after[from][via] && after[via][to];
            }
        }
    }
    after
}

fn edges_of(graph: &CheckedGraph) -> Vec<(usize, usize)> {
    let all = graph.successors.iter().enumerate();
    all.flat_map(|(from, next)| next.iter().map(move |&(to, _)| (from, to)))
        .collect()
}

/// Whether two accesses touch the same item, one of them to change it.
fn touch(x: &Declared, y: &Declared) -> bool {
    let mut items = 0..2 * ITEMS;
    let shared = items.any(|item| x.part.contains(&item) && y.part.contains(&item));
    shared && x.resource == y.resource && (x.kind == Writes || y.kind == Writes)
}

/// Whether a node touches what it writes twice.
fn is_declared_twice(node: &DeclaredNode) -> bool {
    let all = node.accesses.iter().enumerate();
    let mut pairs = all.flat_map(|(place, x)| node.accesses[..place].iter().map(move |y| (x, y)));
    pairs.any(|(x, y)| touch(x, y))
}

/// The pairs of nodes that may not run at the same time.
fn collisions(graph: &DeclaredGraph) -> Vec<(usize, usize)> {
    let touch = |a: &DeclaredNode, b: &DeclaredNode| {
        let mut all = a.accesses.iter();
        all.any(|x| b.accesses.iter().any(|y| touch(x, y)))
    };
    let pairs = (0..graph.nodes.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    pairs
        .filter(|&(a, b)| touch(&graph.nodes[a], &graph.nodes[b]))
        .collect()
}

/// Goal: a graph is refused exactly if it has a cycle, two nodes that touch the same items in no order, one
/// of them writing, or a node that touches twice what it writes; a graph that is accepted has the declared
/// order and no other one, no edge that follows from others (if it is small), and an order of its nodes that
/// keeps the edges. Method: random graphs against the transitive closure, found by trying everything.
#[test]
fn random_graphs_are_judged_as_by_brute_force_long() {
    let rounds = 60_000;
    let mut random = Random(1);
    let mut found = [0; 4];
    for _ in 0..rounds {
        let graph = random_graph(&mut random, 8, 0);
        let nodes = graph.nodes.len();
        let plain: Vec<_> = graph
            .edges
            .iter()
            .map(|edge| (edge.from, edge.to))
            .collect();
        let after = closure(nodes, &plain);
        let has_cycle = (0..nodes).any(|node| after[node][node]);
        let unordered = |&(a, b): &(usize, usize)| !after[a][b] && !after[b][a];
        match graph.checked() {
            Err(PlanError::Cycle { .. }) => {
                assert!(has_cycle);
                found[0] += 1;
            }
            Err(PlanError::Conflict(conflict)) => {
                assert!(!has_cycle);
                // The first node that is in no order with one before it, and the last one of these.
                let mut all = collisions(&graph);
                all.retain(unordered);
                let later = all.iter().map(|&(_, b)| b).min().expect("there is one");
                let earlier = all.iter().filter(|&&(_, b)| b == later).map(|&(a, _)| a);
                assert_eq!(conflict.later.label.name, NAMES[later]);
                let named = NAMES
                    .iter()
                    .position(|&it| it == conflict.earlier.label.name);
                // Of a node's accesses the first one that collides counts.
                let named = named.expect("it is a node");
                assert!(earlier.clone().any(|earlier| earlier == named));
                if graph.nodes[later].accesses.len() == 1 {
                    assert_eq!(Some(named), earlier.max());
                }
                found[1] += 1;
            }
            Err(PlanError::DeclaredTwice { .. }) => {
                assert!(graph.nodes.iter().any(is_declared_twice));
                found[3] += 1;
            }
            Err(other) => panic!("{other}"),
            Ok(checked) => {
                assert!(!has_cycle && !collisions(&graph).iter().any(unordered));
                assert!(!graph.nodes.iter().any(is_declared_twice));
                let kept = edges_of(&checked);
                assert_eq!(closure(nodes, &kept), after, "the order has changed");
                let is_reduced = nodes <= DeclaredGraph::REDUCED_MAX;
                for left_out in 0..if is_reduced { kept.len() } else { 0 } {
                    let mut fewer = kept.clone();
                    fewer.remove(left_out);
                    assert_ne!(closure(nodes, &fewer), after, "an edge too many");
                }
                let place = |node| checked.order.iter().position(|&other| other == node);
                assert!(kept.iter().all(|&(from, to)| place(from) < place(to)));
                found[2] += 1;
            }
        }
    }
    assert!(found.iter().all(|&count| count > rounds / 100), "{found:?}");
}

/// Goal: where nodes ask for the missing edges, these are added in the order of the calls: all that collides
/// is ordered, what was ordered stays so, and nothing else is ordered than follows from collisions. Method:
/// random graphs; the edges of the oracle are those between all nodes that collide, as far as they were in no
/// order.
#[test]
fn missing_edges_are_those_of_the_calls_long() {
    let rounds = 30_000;
    let mut random = Random(2);
    for _ in 0..rounds {
        // All edges lead on, so that the order of the calls is an order.
        let graph = random_graph(&mut random, 0, 100);
        let own = |edge: &&DeclaredEdge| edge.from != edge.to;
        let edges: Vec<_> = graph.edges.iter().filter(own).copied().collect();
        let mut graph = DeclaredGraph { edges, ..graph };
        let all = graph.nodes.iter_mut();
        let twice = all.filter(|node| is_declared_twice(node));
        twice.for_each(|node| _ = node.accesses.pop());
        let nodes = graph.nodes.len();
        let mut all: Vec<_> = graph
            .edges
            .iter()
            .map(|edge| (edge.from, edge.to))
            .collect();
        all.extend(collisions(&graph));
        let checked = graph.checked().expect("nothing is missing then");
        assert_eq!(closure(nodes, &edges_of(&checked)), closure(nodes, &all));
    }
}

/// Goal: where only some nodes ask for the missing edges, and names of later nodes lead back, verdict and
/// order are those of a look at all pairs, the nearest one first. Method: that look, with all ways tried anew
/// after each edge.
#[test]
fn some_edges_are_added_as_by_a_look_at_all_pairs_long() {
    let rounds = 20_000;
    let mut random = Random(3);
    let mut found = [0; 2];
    for _ in 0..rounds {
        let mut graph = random_graph(&mut random, 20, 60);
        let all = graph.nodes.iter_mut();
        let twice = all.filter(|node| is_declared_twice(node));
        twice.for_each(|node| _ = node.accesses.pop());
        let nodes = graph.nodes.len();
        let edges = graph.edges.iter();
        let mut edges: Vec<_> = edges.map(|edge| (edge.from, edge.to)).collect();
        let mut after = closure(nodes, &edges);
        if (0..nodes).any(|node| after[node][node]) {
            continue;
        }
        let mut pairs = collisions(&graph);
        pairs.sort_unstable_by_key(|&(a, b)| (b, std::cmp::Reverse(a)));
        let refused = pairs.into_iter().any(|(a, b)| {
            let is_missing = !after[a][b] && !after[b][a];
            if is_missing && graph.nodes[b].is_auto {
                edges.push((a, b));
                after = closure(nodes, &edges);
            }
            is_missing && !graph.nodes[b].is_auto
        });
        let checked = graph.checked();
        assert_eq!(matches!(checked, Err(PlanError::Conflict(_))), refused);
        if let Ok(checked) = checked {
            assert_eq!(closure(nodes, &edges_of(&checked)), after);
        }
        found[usize::from(refused)] += 1;
    }
    assert!(found.iter().all(|&count| count > rounds / 20), "{found:?}");
}

/// Goal: the errors name nodes with their places, and what to do. Method: one of each.
#[test]
fn errors_say_what_and_where() {
    let at = |line: u32| format!("({}:{line})", file!());
    let mut graph = DeclaredGraph {
        resources: vec!["positions"],
        ..DeclaredGraph::default()
    };
    let line = line!() + 1;
    graph.nodes = vec![node("a"), node("b"), node("c")];
    let here = at(line);
    graph.edges = vec![edge(1, 2), edge(2, 1), edge(0, 1)];
    let cycle = graph.checked().unwrap_err().to_string();
    assert_eq!(
        cycle,
        format!(
            "the graph has a cycle: 'b' {here}, then 'c' {here}, then 'b' {here} again: leave out one of \
             these `after`"
        )
    );
    graph.edges.clear();
    graph.nodes[0].accesses.push(access(0, Writes));
    graph.nodes[2].accesses.push(access(0, Reads));
    let conflict = graph.checked().unwrap_err().to_string();
    assert_eq!(
        conflict,
        format!(
            "'c' ({}) reads 'positions', and 'a' ({}) writes it, and nothing orders the two jobs: to 'c', \
             add `.after(a)`, or `.auto()`",
            graph.nodes[2].label.site, graph.nodes[0].label.site
        )
    );
    graph.edges.push(edge(0, 2));
    graph.nodes[0].accesses.push(access(0, Reads));
    let twice = graph.checked().unwrap_err().to_string();
    assert_eq!(
        twice,
        format!(
            "'a' {here} declares 'positions' twice, and writes it: one `writes` is enough to read it, too"
        )
    );
    graph.nodes[0].accesses[1].part = Range { start: 5, end: 3 };
    let backwards = graph.checked().unwrap_err().to_string();
    assert_eq!(
        backwards,
        format!(
            "'a' {here} declares items 5..3 of 'positions', which end before they begin: name the first \
             item, and the one after the last"
        )
    );
}

/// Goal: of each resource the part that ends last is needed, also if it is empty; a resource that is only
/// touched as a whole needs nothing. Method: three resources, and parts in another order than their ends.
#[test]
fn the_part_that_ends_last_is_needed() {
    let mut graph = DeclaredGraph {
        resources: vec!["a", "b", "c"],
        nodes: ["first", "second"].map(node).into(),
        ..DeclaredGraph::default()
    };
    let of = |resource, part| Declared {
        part,
        ..access(resource, Reads)
    };
    graph.nodes[0].accesses = vec![of(0, 1..4), of(1, Declared::WHOLE), of(2, 0..1)];
    graph.nodes[1].accesses = vec![of(0, 0..2), of(2, 3..3)];
    let needed = graph.needed_items();
    let all = needed.iter();
    let all = all.map(|it| (it.name, it.label.name, it.items.clone()));
    let all: Vec<_> = all.collect();
    assert_eq!(all, [("a", "first", 1..4), ("c", "second", 3..3)]);
}

/// Goal: what a condition decides is not left out, even if the order follows from other edges. Method: a
/// condition, a node after it, and one after both that hangs on the condition.
#[test]
fn conditions_stay() {
    let mut graph = DeclaredGraph {
        nodes: ["condition", "between", "last"].map(node).into(),
        ..DeclaredGraph::default()
    };
    graph.edges = vec![edge(0, 1), edge(1, 2), edge(0, 2)];
    graph.edges[2].is_condition = true;
    let checked = graph.checked().unwrap();
    assert_eq!(checked.successors[0], [(2, true), (1, false)]);
    assert_eq!(checked.predecessors, [0, 1, 2]);
}
