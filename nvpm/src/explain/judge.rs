// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Ranks the causes of what was found in a log: the surest cause comes first, then causes that other failures cannot
//! have, then the cause of the earliest line.
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::explain::failure::{is_end, is_failure};
use crate::explain::known::Variant;
use crate::explain::log_facts::LogFacts;
use crate::explain::overcome::Done;
use crate::explain::scan::{Hit, Scan};
use crate::explain::table::{self, Case, Cause, Meaning, Sure};

/// A message that shows a cause.
#[derive(Clone)]
pub struct Proof {
    pub variant: Variant,
    pub hit: Hit,
    pub case: &'static Case,
    pub sure: Sure,
}

impl Proof {
    /// Returns the first text that is not empty.
    fn first_of(texts: [&'static str; 3]) -> &'static str {
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// A cause, and the messages that show the cause.
pub struct Found {
    pub cause: usize,
    pub proofs: Vec<Proof>,
}

impl Found {
    pub fn about(&self) -> &'static Cause {
        table::cause(self.cause)
    }

    /// Returns the surest proof. If several proofs are in one line, the message with the fewest cases says most.
    pub fn best(&self) -> Option<&Proof> {
        self.proofs.iter().min_by_key(|one| (Reverse(one.sure), one.hit.order, one.variant.row().cases.len()))
    }

    pub fn sure(&self) -> Sure {
        self.best().map_or(Sure::Possible, |best| best.sure)
    }

    /// Returns whether only routine lines show the cause. Such a cause comes after all others, however sure it is.
    fn is_notice(&self) -> bool {
        self.proofs.iter().all(|one| matches!(one.variant.row().kind, Meaning::Fine | Meaning::Notice))
    }

    /// Returns whether only messages of any program show the cause. A program, or the kernel, knows more about its
    /// failure than the error of a verb says.
    fn is_general(&self) -> bool {
        self.best().is_some_and(|best| best.variant.row().general)
    }

    pub fn first_line(&self) -> usize {
        self.proofs.iter().map(|one| one.hit.order).min().unwrap_or(0)
    }

    /// Returns the case of the best proof, if it has the cause that is said.
    fn own_case(&self) -> Option<&'static Case> {
        self.best().map(|best| best.case).filter(|case| case.cause == self.cause)
    }

    pub fn says(&self) -> &'static str {
        Proof::first_of([self.own_case().map_or("", |case| case.says), self.about().says, ""])
    }

    /// Returns the advice of the case, of the message or of the cause: the first that exists.
    pub fn todo(&self) -> &'static str {
        let of_message = self.best().filter(|_| self.own_case().is_some()).map_or("", |best| best.variant.row().todo);
        Proof::first_of([self.own_case().map_or("", |case| case.todo), of_message, self.about().todo])
    }

    pub fn first_command(&self) -> &'static str {
        Proof::first_of([self.own_case().map_or("", |case| case.first), self.about().first, ""])
    }

    /// Returns the template of the advice for the machine that asks. If the case or the message has its own advice,
    /// that of the cause does not count.
    pub fn here(&self) -> &'static str {
        let own = self.own_case();
        let of_message = self.best().filter(|_| own.is_some()).map_or("", |best| best.variant.row().todo);
        let is_special = own.is_some_and(|case| !case.todo.is_empty()) || !of_message.is_empty();
        Proof::first_of([own.map_or("", |case| case.here), if is_special { "" } else { self.about().here }, ""])
    }
}

/// A message that was found, and shows no cause here.
pub struct Aside {
    pub variant: Variant,
    pub hit: Hit,
    pub why: &'static str,
}

pub const FINE_HERE: &str = "nothing is wrong";
pub const NOTICE_HERE: &str = "a routine line";
pub const FOLLOWS_HERE: &str = "follows from another failure";
pub const OVERCOME: &str = "a later line says that it succeeded";
pub const NO_CASE: &str = "no known cause fits";
pub const EXCLUDED: &str = "another line says that it means nothing here";

pub struct Verdict {
    /// The causes from the likeliest to the least likely.
    pub causes: Vec<Found>,
    /// The messages that follow from a failure that another line names.
    pub follows: Vec<Aside>,
    pub aside: Vec<Aside>,
    /// The first failure that a later line shows to be overcome, and that line.
    pub overcome: Option<(Hit, Done)>,
}

impl Verdict {
    /// Returns whether the first cause is more than possible.
    pub fn is_answer(&self) -> bool {
        self.causes.first().is_some_and(|first| first.sure() > Sure::Possible)
    }
}

pub fn judged(scan: &Scan) -> Verdict {
    let mut found: BTreeMap<usize, Found> = BTreeMap::new();
    let mut verdict = Verdict { causes: Vec::new(), follows: Vec::new(), aside: Vec::new(), overcome: None };
    let mut reasons = Vec::new();
    for (variant, hit) in &scan.hits {
        let row = variant.row();
        let aside = |why| Aside { variant: variant.clone(), hit: hit.clone(), why };
        let part = scan.known.range(variant.message, &hit.text).and_then(|range| hit.text.get(range));
        let done = scan.overcome.of(hit, part.unwrap_or_default());
        if let Some(done) = done.filter(|_| matches!(row.kind, Meaning::Cause | Meaning::Follows)) {
            verdict.aside.push(aside(OVERCOME));
            verdict.overcome.get_or_insert_with(|| (hit.clone(), done.clone()));
            continue;
        }
        let proofs = if is_excluded(variant, &scan.facts) { Vec::new() } else { proofs_of(variant, hit, &scan.facts) };
        match row.kind {
            _ if is_excluded(variant, &scan.facts) => verdict.aside.push(aside(EXCLUDED)),
            Meaning::Fine if proofs.is_empty() => verdict.aside.push(aside(FINE_HERE)),
            Meaning::Notice if proofs.is_empty() => verdict.aside.push(aside(NOTICE_HERE)),
            Meaning::Follows => verdict.follows.push(aside(FOLLOWS_HERE)),
            Meaning::Reason => {
                verdict.aside.push(aside(FINE_HERE));
                reasons.extend(proofs);
            }
            Meaning::Cause if proofs.is_empty() => verdict.aside.push(aside(NO_CASE)),
            Meaning::Cause | Meaning::Fine | Meaning::Notice => add(&mut found, proofs, &scan.facts),
        }
    }
    let is_reason = |proof: &Proof| found.values().any(|one| one.about().because.contains(&proof.case.cause));
    let reasons = reasons.into_iter().filter(is_reason).collect();
    add(&mut found, reasons, &scan.facts);
    explain_by_reasons(&mut found);
    doubt_below_unknown(&mut found, scan);
    let unknown = scan.unknown_and_overcome().map(|(hit, done)| (hit.clone(), done.clone()));
    verdict.overcome = verdict.overcome.or(unknown);
    verdict.causes = found.into_values().collect();
    rank(&mut verdict.causes);
    verdict.follows.sort_by_key(|one| one.hit.order);
    verdict.aside.sort_by_key(|one| one.hit.order);
    verdict
}

/// Adds proofs to the causes that they show, as far as the log can have them.
fn add(found: &mut BTreeMap<usize, Found>, proofs: Vec<Proof>, facts: &LogFacts) {
    for proof in proofs {
        let other = table::cause(proof.case.cause).instead.iter().find(|(fact, _)| facts.has(*fact));
        let cause = other.map_or(proof.case.cause, |(_, other)| *other);
        found.entry(cause).or_insert_with(|| Found { cause, proofs: Vec::new() }).proofs.push(proof);
    }
}

/// Returns whether the message says nothing in this log.
fn is_excluded(variant: &Variant, facts: &LogFacts) -> bool {
    variant.excluded || variant.row().never.iter().any(|one| facts.holds(one) == Some(true))
}

/// Returns the cases of a message that hold. The first case that holds and is more than possible wins, so a table has
/// the special cases before the general ones.
fn proofs_of(variant: &Variant, hit: &Hit, facts: &LogFacts) -> Vec<Proof> {
    let mut proofs = Vec::new();
    let mut is_won = false;
    for (place, case) in variant.row().cases.iter().enumerate() {
        let is_sure = case.sure > Sure::Possible;
        let holds = variant.cases & (1 << place) != 0
            && !table::cause(case.cause).never.iter().any(|fact| facts.has(*fact))
            && case.when.iter().all(|one| facts.holds(one) != Some(false))
            && !case.unless.iter().any(|one| facts.holds(one) == Some(true));
        if holds && !(is_won && is_sure) {
            proofs.push(Proof { variant: variant.clone(), hit: hit.clone(), case, sure: case.sure });
            is_won |= is_sure;
        }
    }
    proofs
}

/// A reason can stand in the log before the cause that only says what is missing. The missing part shows that the
/// reason did harm, so the reason is as sure.
fn explain_by_reasons(found: &mut BTreeMap<usize, Found>) {
    let general: Vec<(&'static [usize], Sure, usize)> = found
        .values()
        .filter(|one| !one.about().because.is_empty())
        .map(|one| (one.about().because, one.sure(), one.first_line()))
        .collect();
    for (because, sure, line) in general {
        for one in found.values_mut().filter(|one| because.contains(&one.cause) && one.first_line() <= line) {
            for proof in &mut one.proofs {
                proof.sure = proof.sure.max(sure);
            }
        }
    }
}

/// A probable cause below an unknown failure may only follow from that failure, so it is no more than possible.
fn doubt_below_unknown(found: &mut BTreeMap<usize, Found>, scan: &Scan) {
    let may_be_the_cause = |hit: &&Hit| hit.is_topic && is_failure(&hit.text) && !is_end(&hit.text);
    let Some(unknown) = scan.unknown().into_iter().find(may_be_the_cause).map(|hit| hit.order) else { return };
    let is_doubted = |one: &&mut Found| one.sure() == Sure::Probable && unknown < one.first_line();
    for one in found.values_mut().filter(is_doubted) {
        for proof in &mut one.proofs {
            proof.sure = Sure::Possible;
        }
    }
}

pub fn rank(causes: &mut [Found]) {
    causes.sort_by_key(|one| {
        let cases = one.best().map_or(0, |best| best.variant.row().cases.len());
        (
            one.is_notice(),
            Reverse(one.sure()),
            one.about().late,
            one.is_general(),
            one.first_line(),
            !one.about().because.is_empty(),
            cases,
        )
    });
}
