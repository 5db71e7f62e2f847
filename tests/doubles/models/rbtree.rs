// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The interface of the kernel crate's red-black tree, implemented with a tree of the standard
//! library.

use std::{
    collections::{
        btree_map::{self, Entry},
        BTreeMap,
    },
    ops::Bound,
};

use crate::{
    alloc::{Counted, Flags},
    error::Result,
};

/// A sorted map.
pub(crate) struct RBTree<K, V>(BTreeMap<K, (V, Counted)>);

/// An element with its own memory, outside any tree.
pub(crate) struct RBTreeNode<K, V>(K, V, Counted);

impl<K, V> RBTreeNode<K, V> {
    pub(crate) fn new(key: K, value: V, _: Flags) -> Result<Self> {
        Ok(Self(key, value, Counted::new()?))
    }
}

impl<K: Ord + Clone, V> RBTree<K, V> {
    pub(crate) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn insert(&mut self, node: RBTreeNode<K, V>) -> Option<RBTreeNode<K, V>> {
        let RBTreeNode(key, value, counted) = node;
        let replaced = self.0.insert(key.clone(), (value, counted));
        replaced.map(|(value, counted)| RBTreeNode(key, value, counted))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key).map(|(value, _)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key).map(|(value, _)| value)
    }

    pub(crate) fn find_mut(&mut self, key: &K) -> Option<OccupiedEntry<'_, K, V>> {
        match self.0.entry(key.clone()) {
            Entry::Occupied(entry) => Some(OccupiedEntry(entry)),
            Entry::Vacant(_) => None,
        }
    }

    pub(crate) fn remove_node(&mut self, key: &K) -> Option<RBTreeNode<K, V>> {
        let (key, (value, counted)) = self.0.remove_entry(key)?;
        Some(RBTreeNode(key, value, counted))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, (value, _))| (key, value))
    }

    pub(crate) fn cursor_lower_bound(&self, key: &K) -> Option<Cursor<'_, K, V>> {
        let mut range = self.0.range((Bound::Included(key), Bound::Unbounded));
        range.next().map(|(key, (value, _))| Cursor(key, value))
    }
}

/// An element in a tree, which can be removed.
pub(crate) struct OccupiedEntry<'a, K, V>(btree_map::OccupiedEntry<'a, K, (V, Counted)>);

impl<K: Ord, V> OccupiedEntry<'_, K, V> {
    pub(crate) fn get(&self) -> &V {
        &self.0.get().0
    }

    pub(crate) fn remove_node(self) -> RBTreeNode<K, V> {
        let (key, (value, counted)) = self.0.remove_entry();
        RBTreeNode(key, value, counted)
    }
}

/// An element in a tree.
pub(crate) struct Cursor<'a, K, V>(&'a K, &'a V);

impl<K, V> Cursor<'_, K, V> {
    pub(crate) fn current(&self) -> (&K, &V) {
        (self.0, self.1)
    }
}
