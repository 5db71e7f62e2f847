// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the answer for programs.
use serde_json::{Value, json};

use crate::explain::answer::Answer;
use crate::explain::judge::{Aside, Found};
use crate::explain::prefixes::hosts_of;
use crate::explain::scan::Hit;
use crate::explain::table::{FACTS, Sure};
use crate::explain::wording::{plain, sentence};

/// A change of the object's meaning increases this number.
const SCHEMA: u32 = 2;

type Quoted<'a> = &'a dyn Fn(&str) -> String;

pub fn object(answer: &Answer, quoted: Quoted) -> Value {
    let verdict = answer.verdict;
    let certain = verdict.causes.first().is_some_and(|first| first.sure() == Sure::Certain);
    json!({
        "schema": SCHEMA,
        "answer": answer.kind().word(),
        "certain": certain,
        "log": log(answer, quoted),
        "used": answer.scan.success.sentences().iter().map(|text| quoted(text)).collect::<Vec<_>>(),
        "crash": answer.scan.crash.sentence(),
        "causes": verdict.causes.iter().map(|one| cause(one, answer, quoted)).collect::<Vec<_>>(),
        "follows": verdict.follows.iter().map(|one| aside(one, answer, quoted)).collect::<Vec<_>>(),
        "aside": verdict.aside.iter().map(|one| aside(one, answer, quoted)).collect::<Vec<_>>(),
        "unknown": answer.unknown().into_iter().map(|hit| line(hit, answer, quoted)).collect::<Vec<_>>(),
    })
}

fn log(answer: &Answer, quoted: Quoted) -> Value {
    let facts = &answer.scan.facts;
    let name = |place: &usize| FACTS.get(*place).map_or("", |fact| fact.name);
    let versions: serde_json::Map<String, Value> =
        facts.versions.iter().map(|(place, all)| (name(place).to_owned(), json!(all))).collect();
    let variables: serde_json::Map<String, Value> = facts
        .variables
        .iter()
        .map(|(name, values)| (name.clone(), values.iter().map(|value| quoted(value)).collect::<Vec<_>>().into()))
        .collect();
    json!({
        "files": answer.scan.files.iter().map(|name| quoted(name)).collect::<Vec<_>>(),
        "lines": answer.scan.lines,
        "facts": facts.names(),
        "versions": versions,
        "variables": variables,
        "nodes": answer.nodes(),
        "ranks": answer.ranks(),
    })
}

fn cause(found: &Found, answer: &Answer, quoted: Quoted) -> Value {
    let about = found.about();
    let of_node = answer.node.and_then(|node| node.advice(found));
    let word = answer.node.and_then(|node| node.word(found));
    let messages: Vec<Value> =
        found.proofs.iter().map(|one| with_message(one.variant.row().text, line(&one.hit, answer, quoted))).collect();
    json!({
        "cause": about.key,
        "first": answer.first_command(found).map(|command| quoted(&plain(&command))),
        "says": plain(&sentence(found.says())),
        "do": plain(&of_node.unwrap_or_else(|| found.todo().to_owned())),
        "here": found.here(),
        "note": plain(&sentence(found.best().map_or("", |best| best.variant.row().note))),
        "sure": found.sure() as u8 + 1,
        "nv_peer_mem": about.ours,
        "status": plain(about.status),
        "node": word.map_or(json!({}), |(fact, fits)| json!({"fact": fact, "fits": fits})),
        "messages": messages,
    })
}

fn aside(one: &Aside, answer: &Answer, quoted: Quoted) -> Value {
    let mut object = with_message(one.variant.row().text, line(&one.hit, answer, quoted));
    if let Some(fields) = object.as_object_mut() {
        fields.insert("why".to_owned(), json!(one.why));
    }
    object
}

fn with_message(text: &str, mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("message".to_owned(), json!(text));
    }
    object
}

fn line(hit: &Hit, answer: &Answer, quoted: Quoted) -> Value {
    json!({
        "file": answer.scan.files.get(hit.file).map(|name| quoted(name)),
        "line": hit.line,
        "text": quoted(&hit.text),
        "count": hit.count,
        "hosts": hosts_of(&hit.sources).iter().map(|host| quoted(host)).collect::<Vec<_>>(),
    })
}
