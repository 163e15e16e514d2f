//! The places in programs at which jobs of a name are made, as descriptions tell them (`site`).
//!
//! The job system has a place of its own for each label: a line of Rust. For a program in C that is a line of
//! this library. So what C tells is kept here by name, and put into texts where the job system puts its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

/// A file and a line.
type Site = (&'static str, u32);

/// The sites of each name.
static SITES: Mutex<BTreeMap<&'static str, Vec<Site>>> = Mutex::new(BTreeMap::new());

/// The most names with sites, and the most sites of a name that are kept.
const NAMES_MAX: usize = 1 << 14;
const EACH_MAX: usize = 4;

/// Jobs of this name are made there.
#[cold]
pub(crate) fn add(name: &'static str, site: Site) {
    let mut sites = SITES.lock().unwrap_or_else(|broken| broken.into_inner());
    if sites.len() < NAMES_MAX || sites.contains_key(name) {
        let of_name = sites.entry(name).or_default();
        if of_name.len() < EACH_MAX && !of_name.contains(&site) {
            of_name.push(site);
        }
    }
}

/// Where jobs of this name are made, in brackets after a space; nothing if that was not told. Several places
/// may make jobs of one name.
pub(crate) fn of(name: &str) -> String {
    let sites = SITES.lock().unwrap_or_else(|broken| broken.into_inner());
    let mut text = String::new();
    for (file, line) in sites.get(name).into_iter().flatten() {
        let before = if text.is_empty() { " (" } else { " or " };
        let _ = write!(text, "{before}{file}:{line}");
    }
    if !text.is_empty() {
        text.push(')');
    }
    text
}
