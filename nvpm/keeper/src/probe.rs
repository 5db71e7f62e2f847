// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! `probe`: tells whether `serve` has reached its aim, and the module is still registered.
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::node::Node;
use crate::program::code;
use crate::report::{self, Status, say};

/// Prints the state, and returns the exit code.
pub fn probe(node: &Node, directory: &Path) -> u8 {
    let (is_ready, said) = judged(node, report::read(directory).as_ref(), report::now());
    say(&said);
    u8::from(!is_ready)
}

fn judged(node: &Node, status: Option<&Status>, now: Duration) -> (bool, String) {
    let Some(status) = status else { return (false, "serve has not begun.".to_owned()) };
    let state = status.state.name();
    let reached = (true, format!("{state}: {}", status.reason));
    if !status.state.is_ready() {
        return (false, reached.1);
    }
    if status.is_stale(now) {
        return (false, format!("serve has not looked at the node for a minute; it was {state}"));
    }
    if !node.own().is_some_and(|own| node.registered(&own.name)) {
        return (false, "the module was unloaded a moment ago".to_owned());
    }
    reached
}

/// Registers GPU memory, and returns the exit code of nvpm.
pub fn selftest() -> u8 {
    match Command::new("nvpm").arg("selftest").status() {
        Ok(status) => u8::try_from(code(status)).unwrap_or(1),
        Err(error) => {
            say(&format!("nvpm selftest cannot be started: {error}"));
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::State;
    use crate::files::{Directory, Files};
    use crate::report::Report;

    #[test]
    fn the_answer_of_the_probe() {
        for (state, loaded, age, code, said) in [
            (Some(State::Ready), true, 59, 0, "ready: because"),
            (Some(State::Held), true, 0, 0, "held: because"),
            (Some(State::Ready), true, 61, 1, "serve has not looked at the node for a minute; it was ready"),
            (Some(State::Ready), false, 0, 1, "the module was unloaded a moment ago"),
            (Some(State::Loading), true, 0, 1, "loading: because"),
            (Some(State::Failed), false, 90, 1, "failed: because"),
            (None, false, 0, 1, "serve has not begun."),
        ] {
            let (node, directory) = (Files::new(), Directory::new());
            node.load_core("1", "ib_core");
            if loaded {
                node.load_own("nvidia_peermem", "2.0.0", 0);
            }
            let mut told = Report::new(&directory, |_| {}).unwrap();
            if let Some(state) = state {
                told.write(state, "because", "nvidia_peermem", report::now().saturating_sub(Duration::from_secs(age)));
            }
            let found = judged(&node, report::read(&directory).as_ref(), report::now());
            assert_eq!(found, (code == 0, said.to_owned()));
            assert_eq!(probe(&node, &directory), code);
        }
    }
}
