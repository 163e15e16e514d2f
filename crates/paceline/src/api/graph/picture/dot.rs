//! A graph in the language of Graphviz.

use std::fmt::Write;

use super::{Drawing, DrawnNode};
use crate::api::graph::NodeKind;

/// A text between quotes.
#[inline]
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[inline]
fn shape(node: &DrawnNode) -> &'static str {
    match node.kind {
        NodeKind::Job if node.is_on_main => "box3d",
        NodeKind::Job => "box",
        NodeKind::Condition => "diamond",
        NodeKind::Sync | NodeKind::Begin | NodeKind::End => "plaintext",
    }
}

#[inline]
pub(super) fn draw(drawing: &Drawing) -> String {
    let mut dot = format!("digraph {} {{\n    rankdir=LR;\n", quoted(&drawing.title));
    for (number, node) in drawing.nodes.iter().enumerate() {
        let mut label = quoted(&node.text);
        if let Some(time) = &node.time {
            label.insert_str(label.len() - 1, &format!("\\n{time}"));
        }
        let red = if node.is_critical { " color=red" } else { "" };
        _ = writeln!(
            dot,
            "    n{number} [label={label} shape={}{red}];",
            shape(node)
        );
    }
    for &(from, to, is_condition) in &drawing.edges {
        let is_red = drawing.nodes[from].is_critical && drawing.nodes[to].is_critical;
        let style = match (is_condition, is_red) {
            (false, false) => "",
            (false, true) => " [color=red]",
            (true, false) => " [style=dashed]",
            (true, true) => " [style=dashed color=red]",
        };
        _ = writeln!(dot, "    n{from} -> n{to}{style};");
    }
    dot.push_str("}\n");
    dot
}
