//! The places in programs at which jobs of a name are made, as descriptions tell them (`site`).
//!
//! The job system has a place of its own for each label: a line of Rust. For a program in C that is a line of
//! this library. So what C tells is kept here by name, and put into texts where the job system puts its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// A file and a line.
type Site = (&'static str, u32);

/// The sites of each name.
static SITES: Mutex<Known> = Mutex::new(BTreeMap::new());

type Known = BTreeMap<&'static str, Vec<Site>>;

/// The most names with sites, and the most sites of a name that are kept.
const NAMES_MAX: usize = 1 << 14;
const EACH_MAX: usize = 4;

/// The last call of [`known`] was in vain.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// What is known, unless another thread has it for long: it may have been in the middle of this when a fork
/// made this process, and is not there any more.
fn known() -> Option<MutexGuard<'static, Known>> {
    const TRIES: usize = 1000;
    let once = || match SITES.try_lock() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
        Err(TryLockError::WouldBlock) => {
            std::thread::yield_now();
            None
        }
    };
    // Relaxed, both: it only says how long it is worth trying.
    let tries = if IS_STUCK.load(Ordering::Relaxed) {
        1
    } else {
        TRIES
    };
    let held = std::iter::repeat_with(once).take(tries).flatten().next();
    IS_STUCK.store(held.is_none(), Ordering::Relaxed);
    held
}

/// Jobs of this name are made there. Whether that is known from now on, or there is no room for it.
#[cold]
pub(crate) fn add(name: &'static str, site: Site) -> bool {
    let Some(mut sites) = known() else {
        return false;
    };
    if sites.len() < NAMES_MAX || sites.contains_key(name) {
        let of_name = sites.entry(name).or_default();
        if of_name.len() < EACH_MAX && !of_name.contains(&site) {
            of_name.push(site);
        }
    }
    true
}

/// Where jobs of this name are made, in brackets after a space; nothing if that was not told. Several places
/// may make jobs of one name.
pub(crate) fn of(name: &str) -> String {
    let mut text = String::new();
    let Some(sites) = known() else {
        return text;
    };
    for (file, line) in sites.get(name).into_iter().flatten() {
        let before = if text.is_empty() { " (" } else { " or " };
        let _ = write!(text, "{before}{file}:{line}");
    }
    if !text.is_empty() {
        text.push(')');
    }
    text
}
