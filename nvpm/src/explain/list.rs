// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints all messages that are known, with their causes, in Markdown. The packages' list of messages is made of this.
use std::io::{self, Write};

use crate::explain::table::{self, CAUSES, Cause, Condition, FACTS, MESSAGES, Meaning, Message, SECTIONS, Sure};
use crate::explain::wording::{sentence, stopped};

pub fn print(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Messages that nvpm explain knows")?;
    for (number, (title, intro)) in SECTIONS.iter().enumerate() {
        writeln!(out, "\n## {title}\n")?;
        if !intro.is_empty() {
            writeln!(out, "{intro}\n")?;
        }
        for row in MESSAGES.iter().filter(|row| row.section == number) {
            message(row, out)?;
        }
    }
    writeln!(out, "\n## Causes\n")?;
    for cause in CAUSES.iter().filter(|cause| !is_of_one_message(cause)) {
        writeln!(out, "- **{}**: {}{}", cause.name, stopped(&sentence(cause.says)), to_do(cause.todo))?;
    }
    out.flush()
}

fn message(row: &Message, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "- `{}` ({})", row.text, if row.from.is_empty() { "this package" } else { row.from })?;
    for case in row.cases {
        let sure = match case.sure {
            Sure::Certain => "certain",
            Sure::Probable => "probable",
            Sure::Possible => "elsewhere",
        };
        let when: Vec<String> = case.when.iter().map(in_words).collect();
        let when = if when.is_empty() { String::new() } else { format!(", if {}", when.join(" and ")) };
        let cause = table::cause(case.cause);
        let said = if is_of_one_message(cause) {
            format!("{}{}", stopped(&sentence(cause.says)), to_do(cause.todo))
        } else {
            let says = if case.says.is_empty() { String::new() } else { format!(": {}", stopped(case.says)) };
            format!("**{}**{says}{}", cause.name, to_do(case.todo))
        };
        writeln!(out, "  - {sure}{when}: {said}")?;
    }
    let note = match row.kind {
        Meaning::Fine | Meaning::Notice | Meaning::Reason => "Nothing is wrong.",
        Meaning::Follows => "Follows from another failure.",
        Meaning::Cause => "",
    };
    let said = if row.note.is_empty() { String::new() } else { stopped(&sentence(row.note)) };
    let todo = to_do(row.todo);
    let notes: Vec<&str> = [note, &said, todo.trim()].into_iter().filter(|text| !text.is_empty()).collect();
    if notes.is_empty() { Ok(()) } else { writeln!(out, "  - {}", notes.join(" ")) }
}

/// Returns whether only one message of this package has the cause. Its key is the name of that message.
fn is_of_one_message(cause: &Cause) -> bool {
    cause.key.contains('-')
}

fn to_do(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" To do: {}", stopped(text)) }
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
