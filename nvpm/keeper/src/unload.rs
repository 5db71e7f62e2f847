// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! `unload`: unloads the module, and asks `serve` not to load it again.
use std::path::Path;

use crate::kernel::{self, Refused};
use crate::node::Node;
use crate::owners::{owners, who};
use crate::report::{self, say};

/// Returns the exit code.
pub fn unload(node: &Node, directory: &Path) -> u8 {
    if let Err(error) = report::ask(directory) {
        say(&format!("serve cannot be asked to leave the module unloaded: {}: {error}.", directory.display()));
        return 1;
    }
    let Some(own) = node.own() else {
        say("no module of this project is loaded.");
        return 0;
    };
    if let Err(Refused(said)) = kernel::unload(&own.name) {
        let who = who(own.references, &owners(node));
        say(&format!("{said}: {who}. It is unloaded when they end."));
        return 1;
    }
    say(&format!("{} {} is unloaded.", own.name, own.version));
    0
}
