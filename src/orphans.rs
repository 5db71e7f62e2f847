// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! How many orphans each user has, and the bound on them.
//!
//! The driver unpins memory only for the process that pinned it. A revocable registration that ends in
//! another process, or together with its own, therefore stays pinned until the memory is freed: it is an
//! *orphan*. It costs kernel memory, in the driver about 60 bytes for each page, which no limit of the
//! user's counts any more. So each user has a bound. Root has none: root of a container without a user
//! namespace is the same user, and one container must not use up the bound of all.

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

use crate::{compat::pr_warn_ratelimited, errno::edquot};

/// Orphans that a user may have.
const MOST_ORPHANS: u32 = 1 << 14;
/// GPU pages in them, together: 4 TiB.
const MOST_PAGES: u64 = 1 << 26;

/// The users who have registered memory revocably, but root.
pub(crate) struct Users(RBTree<u32, User>);

/// A user's entry in [`Users`].
pub(crate) type UserNode = RBTreeNode<u32, User>;

/// The revocable registrations of a user.
#[derive(Default)]
pub(crate) struct User {
    /// Registrations, orphans among them. With the last one the entry goes.
    registrations: u32,
    orphans: u32,
    pages: u64,
}

impl User {
    fn may_register(&self) -> bool {
        self.orphans < MOST_ORPHANS && self.pages < MOST_PAGES
    }
}

impl Users {
    pub(crate) fn new() -> Self {
        Self(RBTree::new())
    }

    /// An entry for a user who has none yet.
    pub(crate) fn new_node(uid: u32) -> Result<UserNode> {
        RBTreeNode::new(uid, User::default(), GFP_KERNEL)
    }

    /// Counts a registration of the user; false if the user has too many orphans. [`None`] if the user has no
    /// entry yet and `node`, which becomes it, is missing.
    pub(crate) fn add(&mut self, uid: u32, node: &mut Option<UserNode>) -> Option<bool> {
        if self.0.get(&uid).is_none() {
            self.0.insert(node.take()?);
        }
        let user = self.0.get_mut(&uid)?;
        let may_register = user.may_register();
        if may_register {
            user.registrations = user.registrations.wrapping_add(1);
        }
        Some(may_register)
    }

    /// A registration of the user has become an orphan of so many pages.
    pub(crate) fn orphan(&mut self, uid: u32, pages: u32) {
        if let Some(user) = self.0.get_mut(&uid) {
            user.orphans = user.orphans.wrapping_add(1);
            user.pages = user.pages.wrapping_add(pages.into());
        }
    }

    /// An orphan's memory has been freed.
    pub(crate) fn freed(&mut self, uid: u32, pages: u32) {
        if let Some(user) = self.0.get_mut(&uid) {
            user.orphans = user.orphans.wrapping_sub(1);
            user.pages = user.pages.wrapping_sub(pages.into());
        }
    }

    /// A registration of the user is gone. The result is to be dropped without a lock.
    pub(crate) fn remove(&mut self, uid: u32) -> Option<UserNode> {
        let user = self.0.get_mut(&uid)?;
        user.registrations = user.registrations.wrapping_sub(1);
        match user.registrations {
            0 => self.0.remove_node(&uid),
            _ => None,
        }
    }
}

/// The error for a user who has too many orphans.
pub(crate) fn too_many(uid: u32) -> Error {
    pr_warn_ratelimited!("the processes of user {uid} have {MOST_ORPHANS} orphaned registrations of GPU memory, or 4 TiB of them (nvpm regions lists them as \"orphaned\"): they stay pinned until the memory is freed, and the user cannot register more until then\n");
    edquot()
}
