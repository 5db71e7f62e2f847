// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints all messages that are known, with their causes, in Markdown. The packages' list of messages is made of this.
use std::io::{self, Write};

use crate::explain::table::{self, Condition, FACTS, MESSAGES, Meaning, SECTIONS, Sure};

pub fn print(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Messages that nvpm explain knows")?;
    for (number, (title, intro)) in SECTIONS.iter().enumerate() {
        writeln!(out, "\n## {title}\n")?;
        if !intro.is_empty() {
            writeln!(out, "{intro}\n")?;
        }
        for row in MESSAGES.iter().filter(|row| row.section == number) {
            writeln!(out, "- `{}` ({})", row.text, if row.from.is_empty() { "this package" } else { row.from })?;
            for case in row.cases {
                let sure = match case.sure {
                    Sure::Certain => "certain",
                    Sure::Probable => "probable",
                    Sure::Possible => "elsewhere",
                };
                let cause = table::cause(case.cause);
                let says = if case.says.is_empty() { cause.says } else { case.says };
                let when: Vec<String> = case.when.iter().map(in_words).collect();
                let when = if when.is_empty() { String::new() } else { format!(", if {}", when.join(" and ")) };
                writeln!(out, "  - {sure}{when}: {}: {says}", cause.name)?;
            }
            let note = match row.kind {
                Meaning::Fine | Meaning::Reason => "nothing is wrong",
                Meaning::Follows => "follows from another failure",
                Meaning::Cause => "",
            };
            let notes: Vec<&str> = [note, row.note].into_iter().filter(|text| !text.is_empty()).collect();
            if !notes.is_empty() {
                writeln!(out, "  - {}", notes.join(": "))?;
            }
        }
    }
    out.flush()
}

/// Returns a condition as a phrase.
fn in_words(condition: &Condition) -> String {
    match condition {
        Condition::Errors(errors) => {
            let names = crate::explain::errno_names::ERRORS.iter().enumerate();
            let names: Vec<&str> =
                names.filter(|(place, _)| errors & (1 << place) != 0).map(|(_, error)| error.0).collect();
            names.join(" or ")
        }
        Condition::Line(text) => format!("`{text}` is in the line"),
        Condition::Named(of, kind) => format!("the {of} is of the kind {kind}"),
        Condition::Fact(fact) => FACTS.get(*fact).map_or("", |fact| fact.words).to_owned(),
        Condition::Version(program, sign, version) => {
            let program = FACTS.get(*program).map_or("", |fact| fact.words);
            let sign = match sign {
                table::Sign::Before => "before",
                table::Sign::UpTo => "up to",
                table::Sign::After => "after",
                table::Sign::From => "from",
                table::Sign::Same => "of version",
            };
            format!("{program} is {sign} {version}")
        }
        Condition::Variable(name, "") => format!("`{name}` is set"),
        Condition::Variable(name, value) => format!("`{name}` is set to `{value}`"),
    }
}
