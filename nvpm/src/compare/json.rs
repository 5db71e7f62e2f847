// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints a fleet as one JSON object. docs/monitoring.md explains its keys.
use serde_json::{Map, Value, json};

use crate::compare::features::Features;
use crate::compare::fleet::{Fleet, Kind};
use crate::compare::groups::{Group, value};
use crate::compare::kinds::{deciding, name_of};
use crate::compare::usage::{by_state, text};

/// A change of the object's meaning increases this number.
const SCHEMA: u32 = 2;

pub fn object(fleet: &Fleet) -> Value {
    let keys: Vec<_> = fleet.kinds.iter().map(|kind| &kind.key).collect();
    let places = deciding(&keys);
    json!({
        "schema": SCHEMA,
        "nodes": fleet.total(),
        "alike": fleet.alike(),
        "nvpm": fleet.versions.iter().map(|(version, names)| (version.clone(), json!(names))).collect::<Map<_, _>>(),
        "kinds": fleet.kinds.iter().map(|kind| of_kind(kind, &places)).collect::<Vec<_>>(),
        "used": used(fleet),
        "groups": fleet.odd().into_iter().map(of_group).collect::<Vec<_>>(),
        "silent": fleet.silent.iter().map(|one| json!({"node": one.name, "words": one.words})).collect::<Vec<_>>(),
        "missing": fleet.missing,
        "missing_count": fleet.missing_count,
        "unexpected": fleet.unexpected,
    })
}

/// Returns the nodes in each state that `nvpm used` told.
fn used(fleet: &Fleet) -> Map<String, Value> {
    let nodes_in = |(state, nodes): (_, Vec<&str>)| (text(state).to_owned(), json!(nodes));
    by_state(&fleet.usage).into_iter().map(nodes_in).collect()
}

fn of_kind(kind: &Kind, places: &[usize]) -> Value {
    let fact = |place: &usize| (name_of(*place).to_owned(), json!(kind.key.0.get(*place).map(|text| &**text)));
    json!({
        "nodes": kind.nodes,
        "alike": kind.alike(),
        "decided_by": places.iter().map(fact).collect::<Map<_, _>>(),
        "norm": features(&kind.norm),
    })
}

fn features(features: &Features) -> Map<String, Value> {
    features.iter().map(|(name, value)| (name.to_string(), json!(&**value))).collect()
}

fn of_group(group: &Group) -> Value {
    let difference = |(name, its): &(_, std::rc::Rc<str>)| {
        let name: &std::rc::Rc<str> = name;
        json!({"feature": &**name, "value": &**its, "others": value(&group.others, name)})
    };
    json!({
        "nodes": group.nodes,
        "kind": group.kind,
        "like": group.like,
        "differences": group.differences.iter().map(difference).collect::<Vec<_>>(),
    })
}
