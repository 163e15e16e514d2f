//! Maps and sets for what is rare: failures, pending futures, searches through the graph.
//!
//! One sort of map serves all of them, because each sort is code in every program that uses the job system.
//! (A tree is three times the code of a hash table.) The hasher has no seed, so that the order of entries is
//! the same in every run.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

pub(crate) type Set<K> = HashSet<K, BuildHasherDefault<DefaultHasher>>;
