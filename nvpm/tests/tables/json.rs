// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Expectations about JSON: `PATH = VALUE`, `PATH has TEXT` and `PATH > NUMBER`. A path is as in `pairs[0].device`.
//! `[*]` stands for all members of a list, `[KEY=VALUE]` for those with this value, `{A,B}` for several values of an
//! object, and `#` for a number of members.
use serde_json::Value;

/// Returns whether the expectation holds.
pub fn holds(object: &Value, expectation: &str) -> bool {
    let (path, rest) = expectation.split_once(' ').expect("a path and a relation");
    let (relation, wanted) = rest.split_once(' ').expect("a relation and a value");
    let found = value(object, path);
    match relation {
        "=" => found == serde_json::from_str::<Value>(wanted).expect("a value in JSON"),
        "has" => found.as_str().is_some_and(|text| text.contains(wanted)),
        ">" => found.as_f64() > wanted.parse().ok(),
        _ => panic!("no relation: {relation}"),
    }
}

fn value(object: &Value, path: &str) -> Value {
    let end = path.find(['.', '[', '{', '#']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    if !name.is_empty() {
        return value(&object[name], rest);
    }
    match rest.chars().next() {
        None => object.clone(),
        Some('.') => value(object, &rest[1..]),
        Some('#') => members(object).len().into(),
        Some('{') => {
            let names = rest[1..].strip_suffix('}').expect("names at the end");
            names.split(',').map(|name| object[name].clone()).collect()
        }
        Some(_) => {
            let (index, rest) = rest[1..].split_once(']').expect("an index");
            match (index, index.split_once('=')) {
                ("*", _) => members(object).iter().map(|one| value(one, rest)).collect(),
                (_, Some((key, wanted))) => {
                    let wanted: Value = serde_json::from_str(wanted).expect("a value in JSON");
                    let chosen = members(object).iter().filter(|one| one[key] == wanted);
                    chosen.map(|one| value(one, rest)).collect()
                }
                _ => value(&object[index.parse::<usize>().expect("a number")], rest),
            }
        }
    }
}

fn members(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
