// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the kinds of nodes of a fleet. Nodes with other GPUs are of another kind, also if they are few. Nodes with the
//! same GPUs and another kernel, driver or RDMA core are a kind if they are many: a few of them are nodes that an
//! update has left out.
use std::cmp::Reverse;

use indexmap::IndexMap;

use crate::compare::features::{Key, NO_GPU, Text};

/// The smallest number of nodes with the same GPUs that are a kind.
const LEAST_MODELS: usize = 2;
/// Nodes with the same GPUs and the same software are a kind if they are at least this number, and at least a tenth of
/// the largest number of such nodes.
const LEAST: usize = 3;
const SHARE: usize = 10;
/// A fleet has at most this number of kinds. The nodes of smaller kinds are compared with the nearest of these kinds.
const MOST: usize = 50;

/// The names for the facts of a key.
pub const NAMES: [&str; 4] = ["GPU", "kernel", "driver", "RDMA core"];

/// Returns the nodes of each kind, the largest kind first, and the nodes that are of no kind.
pub fn kinds_of(keys: &IndexMap<String, Key>) -> (Vec<Vec<String>>, Vec<String>) {
    let chosen = choose(keys);
    if chosen.is_empty() {
        let all: Vec<String> = keys.keys().cloned().collect();
        return (if all.is_empty() { Vec::new() } else { vec![all] }, Vec::new());
    }
    let mut kinds: IndexMap<&Key, Vec<String>> = chosen.iter().map(|key| (key, Vec::new())).collect();
    let mut none = Vec::new();
    for (node, key) in keys {
        // A kind has nodes with the same software, or all nodes with the same GPUs if no software of these nodes makes
        // a kind.
        let just_models = just_models(key);
        let own = [key, &just_models].into_iter().find_map(|key| kinds.get_index_of(key));
        match own.and_then(|place| kinds.get_index_mut(place)) {
            Some((_, nodes)) => nodes.push(node.clone()),
            None => none.push(node.clone()),
        }
    }
    let mut kinds: Vec<Vec<String>> = kinds.into_values().collect();
    kinds.sort_by_key(|nodes| Reverse(nodes.len()));
    (kinds, none)
}

fn models_of(key: &Key) -> &Text {
    let Key([models, ..]) = key;
    models
}

fn just_models(key: &Key) -> Key {
    let none = Text::from("");
    Key([models_of(key).clone(), none.clone(), none.clone(), none])
}

/// Returns the keys that are kinds. If there are too many, returns the keys with the most nodes.
fn choose(keys: &IndexMap<String, Key>) -> Vec<Key> {
    let mut by_models: IndexMap<&Text, usize> = IndexMap::new();
    let mut by_key: IndexMap<&Key, usize> = IndexMap::new();
    for key in keys.values() {
        *by_models.entry(models_of(key)).or_default() += 1;
        *by_key.entry(key).or_default() += 1;
    }
    let mut sizes: IndexMap<Key, usize> = IndexMap::new();
    for (models, count) in by_models {
        // All GPUs of a node may have failed.
        let is_kind = if matches!(&**models, "" | NO_GPU) { many(count, keys.len()) } else { count >= LEAST_MODELS };
        if !is_kind {
            continue;
        }
        let is_whole = |key: &Key| {
            let Key([its, _, driver, core]) = key;
            its == models && !driver.is_empty() && !core.is_empty()
        };
        let software: Vec<(&Key, usize)> =
            by_key.iter().filter(|(key, _)| is_whole(key)).map(|(key, size)| (*key, *size)).collect();
        let most = software.iter().map(|(_, size)| *size).max().unwrap_or(0);
        let large: Vec<_> = software.into_iter().filter(|(_, size)| many(*size, most)).collect();
        if large.is_empty() {
            let none = Text::from("");
            sizes.insert(Key([models.clone(), none.clone(), none.clone(), none]), count);
        }
        sizes.extend(large.into_iter().map(|(key, size)| (key.clone(), size)));
    }
    let mut chosen: Vec<(Key, usize)> = sizes.into_iter().collect();
    chosen.sort_by_key(|(_, size)| Reverse(*size));
    chosen.into_iter().take(MOST).map(|(key, _)| key).collect()
}

fn many(count: usize, of: usize) -> bool {
    count >= LEAST && count * SHARE >= of
}

/// Returns the places of the facts in which these keys differ.
pub fn deciding(keys: &[&Key]) -> Vec<usize> {
    let differs = |place: &usize| {
        let mut facts = keys.iter().map(|key| key.0.get(*place));
        facts.next().is_some_and(|first| facts.any(|other| other != first))
    };
    (0..NAMES.len()).filter(differs).collect()
}

pub fn name_of(place: usize) -> &'static str {
    NAMES.get(place).copied().unwrap_or_default()
}

/// Returns the text of a fact of a key. A node may not know the models of its GPUs; a kind may have several kernels,
/// drivers or cores.
pub fn value_of(key: &Key, place: usize) -> &str {
    let text = key.0.get(place).map_or("", |text| text);
    match (text, place) {
        ("", 0) => "not known",
        ("", _) => "any",
        _ => text,
    }
}
