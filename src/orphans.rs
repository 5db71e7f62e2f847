// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Counts each user's orphans, and limits their number.
//!
//! The driver unpins revocably pinned memory only for the process that pinned it. If a revocable
//! registration ends in another process, or while its own process ends, the memory therefore stays
//! pinned until it is freed. Such a registration is an *orphan*. An orphan uses kernel memory, in
//! the driver about 60 bytes for each page, and this memory does not count towards any other limit
//! of the user. This file therefore limits each user's orphans. Root has no limit, because root is
//! the same user in all containers without a user namespace, and one container must not use up the
//! limit of all.

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

use crate::{errno::edquot, ratelimit::pr_warn_ratelimited};

/// The number of orphans that a user may have.
const MOST_ORPHANS: u32 = 1 << 14;
/// The number of GPU pages that a user's orphans may have together: 4 TiB.
const MOST_PAGES: u64 = 1 << 26;

/// The users, except root, who have a revocable registration or an orphan.
pub(crate) struct Users(RBTree<u32, User>);

/// A user's entry in [`Users`].
pub(crate) type UserNode = RBTreeNode<u32, User>;

/// The revocable registrations of a user.
#[derive(Default)]
pub(crate) struct User {
    /// The number of registrations, including orphans. The entry is removed when this number
    /// becomes 0.
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

    /// Allocates an entry for a user who has no entry yet.
    pub(crate) fn new_node(uid: u32) -> Result<UserNode> {
        RBTreeNode::new(uid, User::default(), GFP_KERNEL)
    }

    /// Counts a registration of the user, and returns true. Returns false without counting if the
    /// user has too many orphans. Returns [`None`] if the user has no entry and `node` is [`None`].
    /// The caller must then call again with a node, which becomes the user's entry.
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

    /// Counts an orphan with `pages` pages, which was an ordinary registration of the user before.
    pub(crate) fn orphan(&mut self, uid: u32, pages: u32) {
        if let Some(user) = self.0.get_mut(&uid) {
            user.orphans = user.orphans.wrapping_add(1);
            user.pages = user.pages.wrapping_add(pages.into());
        }
    }

    /// Stops counting an orphan with `pages` pages, because its memory has been freed.
    pub(crate) fn freed(&mut self, uid: u32, pages: u32) {
        if let Some(user) = self.0.get_mut(&uid) {
            user.orphans = user.orphans.wrapping_sub(1);
            user.pages = user.pages.wrapping_sub(pages.into());
        }
    }

    /// Stops counting a registration of the user, because the registration has ended. Returns the
    /// user's entry if it was removed. The caller must drop the result after it has released the
    /// lock.
    pub(crate) fn remove(&mut self, uid: u32) -> Option<UserNode> {
        let user = self.0.get_mut(&uid)?;
        user.registrations = user.registrations.wrapping_sub(1);
        match user.registrations {
            0 => self.0.remove_node(&uid),
            _ => None,
        }
    }
}

/// Returns the error for a user who has too many orphans, and logs the reason.
pub(crate) fn too_many(uid: u32) -> Error {
    pr_warn_ratelimited!("the processes of user {uid} have {MOST_ORPHANS} orphaned registrations of GPU memory, or 4 TiB of them (nvpm regions lists them as \"orphaned\"): they stay pinned until the memory is freed, and the user cannot register more until then\n");
    edquot()
}
