// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Groups the nodes that are alike, and finds the features in which a group differs from the others.
use std::cmp::Reverse;

use indexmap::{IndexMap, IndexSet};

use crate::compare::features::{Features, Text};

pub const MISSING: &str = "not there";

/// A feature, and its value on the nodes of a group.
pub type Difference = (Text, Text);

/// The beginnings of features on which others depend, the first cause first.
const CAUSES: &[&str] = &[
    "kernel",
    "machine, ",
    "GPU, driver",
    "GPU, ",
    "driver, nvidia",
    "driver, ",
    "RDMA device, ",
    "RDMA devices, ",
    "RDMA core, peer memory",
    "RDMA core, ",
    "security, ",
    "module, state",
    "module, ",
    "access, ",
    "PCI, ",
    "distance",
    "ways",
    "selftest",
];
/// The number of larger groups with which a group is compared.
const MOST_LARGER: usize = 20;

/// Nodes that have the same differences from the norm.
#[derive(Clone)]
pub struct Group {
    pub nodes: Vec<String>,
    pub differences: Vec<Difference>,
    /// The value of each feature of the differences on the other nodes.
    pub others: Features,
    /// The other nodes, if these are a larger group of odd nodes to which this group is nearer than to the norm.
    pub like: Vec<String>,
    /// The place of the kind in the fleet.
    pub kind: usize,
}

pub fn value<'a>(features: &'a Features, name: &str) -> &'a str {
    features.get(name).map_or(MISSING, |value| value)
}

fn text_of(features: &Features, name: &str) -> Text {
    features.get(name).cloned().unwrap_or_else(|| MISSING.into())
}

/// The nodes with their features.
pub type Nodes<'a> = IndexMap<&'a str, &'a Features>;

/// Returns the most frequent value of each feature.
pub fn modes_of(nodes: &Nodes) -> Features {
    let mut counts: IndexMap<&Text, IndexMap<&Text, usize>> = IndexMap::new();
    for features in nodes.values() {
        for (name, value) in *features {
            *counts.entry(name).or_default().entry(value).or_default() += 1;
        }
    }
    let mode = |(name, count): (&Text, IndexMap<&Text, usize>)| {
        let total: usize = count.values().sum();
        // The first of several values with the same number counts.
        let best = count.iter().rev().max_by_key(|(_, times)| **times);
        // Most nodes may lack the feature.
        let value = best.filter(|(_, times)| **times >= nodes.len() - total);
        (name.clone(), value.map_or_else(|| MISSING.into(), |(value, _)| (*value).clone()))
    };
    counts.into_iter().map(mode).collect()
}

/// Returns the features of the largest group of equal nodes. If several groups have this size, takes the group that is
/// most like all nodes. Features of different nodes together would be a node that does not exist.
pub fn norm_of(nodes: &Nodes) -> Features {
    let modes = modes_of(nodes);
    let groups = groups_of(nodes, &modes, &|_, _, _, _| true);
    let size = |group: &&Group| (group.nodes.len(), Reverse(group.differences.len()));
    let largest = groups.iter().rev().max_by_key(size).and_then(|group| group.nodes.first());
    let Some(features) = largest.and_then(|name| nodes.get(name.as_str())) else { return modes };
    modes.keys().map(|name| (name.clone(), text_of(features, name))).collect()
}

/// Returns the place of a feature among the differences of a node: causes first, and features that are not on both
/// sides last, because they mostly follow from another difference.
fn rank(name: &str, value: &str, usual: &str) -> (bool, usize) {
    let place = CAUSES.iter().position(|begin| name.starts_with(begin)).unwrap_or(CAUSES.len());
    (value == MISSING || usual == MISSING, place)
}

/// Says whether a difference counts: of a node, in a feature, with the node's value and the usual one.
pub type Counts<'a> = &'a dyn Fn(&str, &str, &str, &str) -> bool;

/// Returns the groups of equal nodes, the smallest first.
pub fn groups_of(nodes: &Nodes, norm: &Features, counts: Counts) -> Vec<Group> {
    let mut found: IndexMap<Vec<Difference>, Vec<String>> = IndexMap::new();
    for (node, features) in nodes {
        let differs = |(name, usual): &(&Text, &Text)| {
            let value = value(features, name);
            value != &***usual && counts(node, name, value, usual)
        };
        let differences =
            norm.iter().filter(differs).map(|(name, _)| (name.clone(), text_of(features, name))).collect();
        found.entry(differences).or_default().push((*node).to_owned());
    }
    let group = |(mut differences, nodes): (Vec<Difference>, Vec<String>)| {
        let others = differences.iter().map(|(name, _)| (name.clone(), text_of(norm, name))).collect();
        differences.sort_by_key(|(name, its)| rank(name, its, value(norm, name)));
        Group { nodes, differences, others, like: Vec::new(), kind: 0 }
    };
    let mut groups: Vec<Group> = found.into_iter().map(group).collect();
    groups.sort_by(|one, other| {
        one.nodes.len().cmp(&other.nodes.len()).then_with(|| one.nodes.first().cmp(&other.nodes.first()))
    });
    groups
}

/// Compares each odd group with the group that differs least from it: the norm, or a larger odd group. If many nodes
/// differ from the norm in the same way, a further fault of one of these nodes is thereby seen.
pub fn nearest(groups: &[Group], norm: &Features) -> Vec<Group> {
    let is_larger = |group: &&Group| !group.differences.is_empty() && group.nodes.len() > 1;
    let larger: Vec<Group> = groups.iter().rev().filter(is_larger).take(MOST_LARGER).cloned().collect();
    groups.iter().map(|group| compared_with_nearest(group, &larger, norm)).collect()
}

fn compared_with_nearest(group: &Group, larger: &[Group], norm: &Features) -> Group {
    let mine: Features = group.differences.iter().cloned().collect();
    let mut best = group.clone();
    for other in larger.iter().filter(|other| other.nodes.len() > group.nodes.len()) {
        let theirs: Features = other.differences.iter().cloned().collect();
        let of = |features: &Features, name: &Text| features.get(name).cloned().unwrap_or_else(|| text_of(norm, name));
        let names: IndexSet<&Text> = mine.keys().chain(theirs.keys()).collect();
        let apart: Vec<&Text> = names.into_iter().filter(|name| of(&mine, name) != of(&theirs, name)).collect();
        // The larger group is itself odd, so naming it must save more than one difference.
        if apart.len() + 1 < best.differences.len() {
            let others: Features = apart.iter().map(|name| ((*name).clone(), of(&theirs, name))).collect();
            let mut differences: Vec<Difference> =
                apart.iter().map(|name| ((*name).clone(), of(&mine, name))).collect();
            differences.sort_by_key(|(name, its)| (rank(name, its, value(&others, name)), name.clone(), its.clone()));
            best = Group { nodes: group.nodes.clone(), differences, others, like: other.nodes.clone(), kind: 0 };
        }
    }
    best
}
