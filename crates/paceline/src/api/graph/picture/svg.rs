//! A graph as a picture in SVG.
//!
//! Nodes of one depth are in one column. In a column they are in the order of the middle of their
//! predecessors, so that few edges cross.

use std::fmt::Write;

use super::{Drawing, DrawnNode};
use crate::api::graph::NodeKind;

/// Lengths, in pixels.
const MARGIN: f64 = 20.0;
const TITLE: f64 = 30.0;
const ROW: f64 = 56.0;
const BOX_HEIGHT: f64 = 38.0;
const GAP: f64 = 60.0;
const CHARACTER: f64 = 7.4;
const LEAST_WIDTH: f64 = 60.0;

/// Where a node is drawn.
#[derive(Clone, Copy, Default)]
struct Spot {
    x: f64,
    y: f64,
    width: f64,
}

/// A text between tags.
#[inline]
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// The width of a node's box.
#[inline]
fn width_of(node: &DrawnNode) -> f64 {
    let time = node.time.as_ref().map_or(0, |time| time.chars().count());
    let characters = node.text.chars().count().max(time);
    (characters as f64 * CHARACTER + 20.0).max(LEAST_WIDTH)
}

/// The nodes of each depth, from the top down.
#[inline]
fn columns(drawing: &Drawing) -> Vec<Vec<usize>> {
    let depth = drawing.nodes.iter().map(|node| node.depth + 1);
    let mut columns = vec![Vec::new(); depth.max().unwrap_or(0)];
    for (number, node) in drawing.nodes.iter().enumerate() {
        columns[node.depth].push(number);
    }
    let mut row = vec![0.0; drawing.nodes.len()];
    for column in &mut columns {
        let middle = |node: usize| {
            let into = drawing.edges.iter().filter(|edge| edge.1 == node);
            let rows: Vec<f64> = into.map(|&(from, ..)| row[from]).collect();
            match rows.len() {
                0 => node as f64,
                count => rows.iter().sum::<f64>() / count as f64,
            }
        };
        let mut sorted: Vec<(f64, usize)> =
            column.iter().map(|&node| (middle(node), node)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        *column = sorted.into_iter().map(|(_, node)| node).collect();
        let half = (column.len() as f64 - 1.0) / 2.0;
        for (place, &node) in column.iter().enumerate() {
            row[node] = place as f64 - half;
        }
    }
    columns
}

/// Where each node is, and the size of the picture.
#[inline]
fn spots(drawing: &Drawing) -> (Vec<Spot>, (f64, f64)) {
    let columns = columns(drawing);
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let mut spots = vec![Spot::default(); drawing.nodes.len()];
    let mut x = MARGIN;
    for column in &columns {
        let widths = column.iter().map(|&node| width_of(&drawing.nodes[node]));
        let width = widths.fold(LEAST_WIDTH, f64::max);
        let top = MARGIN + TITLE + (rows - column.len() as f64) * ROW / 2.0;
        for (place, &node) in column.iter().enumerate() {
            spots[node] = Spot {
                x,
                y: top + place as f64 * ROW,
                width,
            };
        }
        x += width + GAP;
    }
    let size = (x - GAP + MARGIN, 2.0 * MARGIN + TITLE + rows * ROW);
    (spots, size)
}

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #222 } \
.title { font-weight: bold; text-anchor: start } \
.time { font-size: 11px; fill: #666 } \
rect { fill: #eef3fa; stroke: #4a6fa5; rx: 5 } \
.condition { fill: #fdf6dc; stroke: #b08900; rx: 18 } \
.passing { fill: #f3f3f3; stroke: #999; stroke-dasharray: 3 2 } \
.main { fill: #e6f4e6; stroke: #3a7d3a } \
path { fill: none; stroke: #888; stroke-width: 1.2; marker-end: url(#arrow) } \
.if { stroke-dasharray: 5 3 } \
.critical { stroke: #c0392b; stroke-width: 2.2 }";

#[inline]
pub(super) fn draw(drawing: &Drawing) -> String {
    let (spots, (width, height)) = spots(drawing);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>{STYLE}</style>\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\" markerUnits=\"userSpaceOnUse\">\
         <path d=\"M0,0 L8,4 L0,8 z\" style=\"fill:#666;stroke:none;marker-end:none\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" style=\"fill:white;stroke:none\"/>\n"
    );
    let title = escaped(&drawing.title);
    _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{title}</text>",
        MARGIN + 6.0
    );
    for &(from, to, is_condition) in &drawing.edges {
        edge(&mut svg, drawing, &spots, (from, to), is_condition);
    }
    for (node, spot) in drawing.nodes.iter().zip(&spots) {
        self::node(&mut svg, node, *spot);
    }
    svg.push_str("</svg>\n");
    svg
}

#[inline]
fn edge(
    svg: &mut String,
    drawing: &Drawing,
    spots: &[Spot],
    (from, to): (usize, usize),
    is_condition: bool,
) {
    let (a, b) = (spots[from], spots[to]);
    let (x0, y0) = (a.x + a.width, a.y + BOX_HEIGHT / 2.0);
    let (x1, y1) = (b.x, b.y + BOX_HEIGHT / 2.0);
    let bend = (x1 - x0) / 2.0;
    let mut class = String::new();
    if is_condition {
        class.push_str("if ");
    }
    if drawing.nodes[from].is_critical && drawing.nodes[to].is_critical {
        class.push_str("critical");
    }
    _ = writeln!(
        svg,
        "<path class=\"{}\" d=\"M{x0:.0},{y0:.0} C{:.0},{y0:.0} {:.0},{y1:.0} {x1:.0},{y1:.0}\"/>",
        class.trim_end(),
        x0 + bend,
        x1 - bend,
    );
}

#[inline]
fn node(svg: &mut String, node: &DrawnNode, spot: Spot) {
    let class = match node.kind {
        NodeKind::Condition => "condition",
        NodeKind::Sync | NodeKind::Begin | NodeKind::End => "passing",
        NodeKind::Job if node.is_on_main => "main",
        NodeKind::Job => "job",
    };
    let critical = if node.is_critical { " critical" } else { "" };
    let Spot { x, y, width } = spot;
    _ = writeln!(
        svg,
        "<rect class=\"{class}{critical}\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" \
         height=\"{BOX_HEIGHT}\"/>"
    );
    let middle = x + width / 2.0;
    let baseline = y + if node.time.is_some() { 16.0 } else { 23.0 };
    let text = escaped(&node.text);
    _ = writeln!(
        svg,
        "<text x=\"{middle:.0}\" y=\"{baseline:.0}\">{text}</text>"
    );
    if let Some(time) = &node.time {
        let below = y + 31.0;
        let time = escaped(time);
        _ = writeln!(
            svg,
            "<text class=\"time\" x=\"{middle:.0}\" y=\"{below:.0}\">{time}</text>"
        );
    }
}
