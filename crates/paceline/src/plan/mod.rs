//! A graph as it was declared, and as it can be run: order, cycles, conflicts, and no edge too many.
//!
//! This is plain data. It knows no threads and no platform. That two nodes which touch the same data are
//! ordered if one of them changes it, is checked here, and the references that bodies get rest on it: see
//! [`DeclaredGraph::checked`].
//!
//! Functions that know no platform are `inline`, here and in the pictures of graphs: they are compiled where
//! a graph is built, so that the tables for their unwinding are no part of programs without graphs.

mod error;
mod reach;
mod settle;

use crate::access::{AccessKind, Conflict, Conflicting, Declared, NeededItems};
use crate::store::Label;

pub use error::PlanError;
use reach::Reach;
use settle::{Later, Readers, Users};

/// One node, as it was declared.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredNode {
    pub(crate) label: Label,
    pub(crate) accesses: Vec<Declared>,
    /// Edges that are missing between it and nodes that were declared before it are added.
    pub(crate) is_auto: bool,
}

/// An edge: `to` comes after `from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DeclaredEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// `to` runs only if `from` is true.
    pub(crate) is_condition: bool,
}

/// All that was declared. Nodes are in the order of the calls.
#[derive(Default)]
pub(crate) struct DeclaredGraph {
    pub(crate) nodes: Vec<DeclaredNode>,
    pub(crate) edges: Vec<DeclaredEdge>,
    /// Names of resources, by number.
    pub(crate) resources: Vec<&'static str>,
}

/// A graph that can be run.
#[derive(Debug)]
pub(crate) struct CheckedGraph {
    /// All nodes, each behind those that it comes after.
    pub(crate) order: Vec<usize>,
    /// The edges of each node that leads to others, without those that follow from the rest (if there are few
    /// enough nodes): the node, and whether it hangs on the condition. The one with the longest way behind it
    /// is last.
    pub(crate) successors: Vec<Vec<(usize, bool)>>,
    /// How many edges lead to each node.
    pub(crate) predecessors: Vec<usize>,
}

impl DeclaredGraph {
    /// The most nodes of a graph.
    pub(crate) const NODES_MAX: usize = 1 << 20;
    /// The most nodes of a graph whose edges are looked at for those that follow from others. Pairs of nodes
    /// are bits, and these are 32 MB. (The tests try both ways.)
    const REDUCED_MAX: usize = if cfg!(test) { 6 } else { 1 << 14 };
    /// The most pairs of a node and one that declares accesses: 256 MB.
    const PAIRS_MAX: usize = 1 << 31;

    /// Checks it all, and adds the edges that nodes ask for by themselves.
    ///
    /// In the graph that it returns, of any two nodes that touch the same resource, one of them writing it,
    /// one comes after the other; no node touches a resource twice if it writes it; and no part ends before
    /// it begins.
    #[inline]
    pub(crate) fn checked(&self) -> Result<CheckedGraph, PlanError> {
        if self.nodes.len() > DeclaredGraph::NODES_MAX {
            let max = DeclaredGraph::NODES_MAX;
            return Err(PlanError::TooLarge { max });
        }
        let is_reduced = self.nodes.len() <= DeclaredGraph::REDUCED_MAX;
        let declares = |node: &DeclaredNode| !node.accesses.is_empty();
        let declaring = self.nodes.iter().filter(|node| declares(node)).count();
        if !is_reduced && declaring * self.nodes.len() > DeclaredGraph::PAIRS_MAX {
            let max = DeclaredGraph::PAIRS_MAX / self.nodes.len();
            return Err(PlanError::TooManyDeclare { max });
        }
        self.find_backwards()?;
        self.find_declared_twice()?;
        let mut edges = self.edges.clone();
        let order = order_of(self.nodes.len(), &edges).map_err(|cycle| PlanError::Cycle {
            cycle: cycle.iter().map(|&node| self.nodes[node].label).collect(),
        })?;
        let successors = plain_successors(self.nodes.len(), &edges);
        let is_asked = |node: usize| is_reduced || declares(&self.nodes[node]);
        let mut reach = Reach::new(&successors, &order, is_asked);
        self.settle_conflicts(&mut reach, &mut edges)?;
        let order = order_of(self.nodes.len(), &edges);
        let order = order.unwrap_or_else(|_| unreachable!("edges joined only nodes in no order"));
        let reach = is_reduced.then_some(reach);
        Ok(wired(self.nodes.len(), &edges, reach.as_ref(), order))
    }

    /// Finds parts that end before they begin: all code behind this may take their lengths.
    #[inline]
    fn find_backwards(&self) -> Result<(), PlanError> {
        for node in &self.nodes {
            let mut accesses = node.accesses.iter();
            if let Some(access) = accesses.find(|access| access.part.start > access.part.end) {
                return Err(PlanError::Backwards {
                    label: node.label,
                    resource: self.name_of(access.resource),
                    part: access.part.clone(),
                });
            }
        }
        Ok(())
    }

    #[inline]
    fn find_declared_twice(&self) -> Result<(), PlanError> {
        for node in self.nodes.iter().filter(|node| overlap(&node.accesses)) {
            for (place, access) in node.accesses.iter().enumerate() {
                let mut before = node.accesses[..place].iter();
                if before.any(|before| before.collides(access)) {
                    return Err(PlanError::DeclaredTwice {
                        label: node.label,
                        resource: self.name_of(access.resource),
                    });
                }
            }
        }
        Ok(())
    }

    /// Finds nodes that touch the same items in no order. Adds the edges that are missing, where the later
    /// one in the order of the calls asks for it.
    #[inline]
    fn settle_conflicts(
        &self,
        reach: &mut Reach,
        edges: &mut Vec<DeclaredEdge>,
    ) -> Result<(), PlanError> {
        let mut users: Vec<Users> = self.resources.iter().map(|_| Users::new()).collect();
        let mut readers = Readers::default();
        let leads_back = edges.iter().filter(|edge| edge.from > edge.to);
        let last_back = leads_back.map(|edge| edge.from).max();
        for (node, declared) in self.nodes.iter().enumerate() {
            for access in &declared.accesses {
                let later = Later {
                    node,
                    access,
                    keeps_all: last_back.is_some_and(|last| node < last),
                };
                let settle = |reach: &mut Reach, earlier| {
                    if !declared.is_auto {
                        return Err(());
                    }
                    reach.add(earlier, node);
                    edges.push(DeclaredEdge {
                        from: earlier,
                        to: node,
                        is_condition: false,
                    });
                    Ok(())
                };
                let users = &mut users[access.resource as usize];
                if users.add(&later, &mut readers, reach, settle).is_err() {
                    let conflict = self.nearest_conflict(reach, (node, access));
                    return Err(PlanError::Conflict(Box::new(conflict)));
                }
            }
        }
        Ok(())
    }

    /// The conflict of an access, which has one, with the node that was declared last before it.
    #[inline]
    fn nearest_conflict(&self, reach: &Reach, later: (usize, &Declared)) -> Conflict {
        let before = self.nodes[..later.0].iter().enumerate().rev();
        let mut all = before.flat_map(|(node, declared)| {
            let accesses = declared.accesses.iter().rev();
            accesses.map(move |access| (node, access))
        });
        let is_it = |(node, access): &(usize, &Declared)| {
            access.collides(later.1) && !reach.orders(*node, later.0)
        };
        let earlier = all.find(is_it);
        self.conflict(earlier.unwrap_or(later), later)
    }

    /// For each resource of which parts are declared: the access that ends last.
    #[inline]
    pub(crate) fn needed_items(&self) -> Vec<NeededItems> {
        let mut last: Vec<Option<(Label, &Declared)>> = vec![None; self.resources.len()];
        let all = self.nodes.iter();
        let all = all.flat_map(|node| node.accesses.iter().map(|access| (node.label, access)));
        for (label, access) in all.filter(|(_, access)| access.part != Declared::WHOLE) {
            let last = &mut last[access.resource as usize];
            if last.is_none_or(|(_, last)| last.part.end < access.part.end) {
                *last = Some((label, access));
            }
        }
        let needed = last.into_iter().flatten();
        needed
            .map(|(label, access)| NeededItems {
                resource: access.resource,
                name: self.name_of(access.resource),
                label,
                kind: access.kind,
                items: access.part.clone(),
            })
            .collect()
    }

    #[inline]
    fn conflict(&self, earlier: (usize, &Declared), later: (usize, &Declared)) -> Conflict {
        let side = |(node, access): (usize, &Declared)| {
            Conflicting::new(self.nodes[node].label, access.kind, access.part.clone())
        };
        Conflict {
            resource: self.name_of(earlier.1.resource),
            earlier: side(earlier),
            later: side(later),
        }
    }

    #[inline]
    fn name_of(&self, resource: u64) -> &'static str {
        self.resources[resource as usize]
    }
}

/// Whether two of the accesses collide.
#[inline]
fn overlap(accesses: &[Declared]) -> bool {
    let mut sorted: Vec<&Declared> = accesses.iter().filter(|it| !it.part.is_empty()).collect();
    sorted.sort_unstable_by_key(|access| (access.resource, access.part.start));
    // Up to where the accesses of the resource before this one reach, and those that write.
    let (mut resource, mut end, mut written) = (u64::MAX, 0, 0);
    sorted.into_iter().any(|access| {
        if access.resource != resource {
            (resource, end, written) = (access.resource, 0, 0);
        }
        let writes = access.kind == AccessKind::Writes;
        let collides = access.part.start < if writes { end } else { written };
        end = end.max(access.part.end);
        if writes {
            written = written.max(access.part.end);
        }
        collides
    })
}

#[inline]
fn plain_successors(nodes: usize, edges: &[DeclaredEdge]) -> Vec<Vec<usize>> {
    let mut successors = vec![Vec::new(); nodes];
    for edge in edges {
        successors[edge.from].push(edge.to);
    }
    successors
}

/// The nodes, each behind those that it comes after, and otherwise in the order of the calls. `Err`: a cycle.
#[inline]
fn order_of(nodes: usize, edges: &[DeclaredEdge]) -> Result<Vec<usize>, Vec<usize>> {
    let successors = plain_successors(nodes, edges);
    let mut left = vec![0_usize; nodes];
    for edge in edges {
        left[edge.to] += 1;
    }
    let ready = (0..nodes).filter(|&node| left[node] == 0);
    let mut ready: std::collections::BTreeSet<usize> = ready.collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(node) = ready.pop_first() {
        order.push(node);
        for &next in &successors[node] {
            left[next] -= 1;
            if left[next] == 0 {
                ready.insert(next);
            }
        }
    }
    if order.len() == nodes {
        return Ok(order);
    }
    // Each node that is left comes after one that is left, too. So to go back from any of them ends in a
    // cycle.
    let mut path = Vec::new();
    let mut node = left.iter().position(|&left| left > 0).unwrap_or(0);
    while !path.contains(&node) {
        path.push(node);
        let mut into = edges.iter().filter(|edge| edge.to == node);
        node = into
            .find(|edge| left[edge.from] > 0)
            .map_or(node, |edge| edge.from);
    }
    let first = path.iter().position(|&on_path| on_path == node);
    let mut cycle = path.split_off(first.unwrap_or(0));
    cycle.reverse();
    // It begins with the node that was declared first.
    let least = (0..cycle.len()).min_by_key(|&place| cycle[place]);
    cycle.rotate_left(least.unwrap_or(0));
    Err(cycle)
}

/// The graph, with `reach` without edges that follow from others. An edge from a condition says more than an
/// order, and stays.
#[inline]
fn wired(
    nodes: usize,
    edges: &[DeclaredEdge],
    reach: Option<&Reach>,
    order: Vec<usize>,
) -> CheckedGraph {
    let mut successors: Vec<Vec<(usize, bool)>> = vec![Vec::new(); nodes];
    for edge in edges {
        let others = &mut successors[edge.from];
        match others.iter_mut().find(|(to, _)| *to == edge.to) {
            Some((_, is_condition)) => *is_condition |= edge.is_condition,
            None => others.push((edge.to, edge.is_condition)),
        }
    }
    let mut height = vec![0_usize; nodes];
    for &node in order.iter().rev() {
        let all = std::mem::take(&mut successors[node]);
        let follows =
            |to: usize| reach.is_some_and(|reach| all.iter().any(|&(via, _)| reach.leads(via, to)));
        let mut kept = all.to_vec();
        kept.retain(|&(to, is_condition)| is_condition || !follows(to));
        height[node] = kept
            .iter()
            .map(|&(to, _)| height[to] + 1)
            .max()
            .unwrap_or(0);
        kept.sort_by_key(|&(to, _)| (height[to], std::cmp::Reverse(to)));
        successors[node] = kept;
    }
    let mut predecessors = vec![0; nodes];
    for &(to, _) in successors.iter().flatten() {
        predecessors[to] += 1;
    }
    CheckedGraph {
        order,
        successors,
        predecessors,
    }
}

#[cfg(test)]
mod tests;
