// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Compares the crate's trees with `BTreeMap`. The trees must keep each key and each value,
//! although the C code that balances a tree (`kernel.c`) moves the nodes.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::host::{allocations, fail, last_size, Counted};
use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};
use proptest::{collection::vec, prelude::*};

/// Keys are boxes, so that valgrind notices a key that is lost or freed twice.
type Key = Box<u16>;
type Value = Box<u32>;

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, u32),
    Change(u16, u32),
    Remove(u16),
    /// Finds an entry, and removes its node.
    FindAndRemove(u16),
    /// Removes a node, and inserts the same node again.
    Reinsert(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..40_u16;
    let step = prop_oneof![
        4 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
        1 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Change(key, value)),
        1 => key.clone().prop_map(Step::Remove),
        1 => key.clone().prop_map(Step::FindAndRemove),
        1 => key.prop_map(Step::Reinsert),
    ];
    vec(step, 0..150)
}

fn node(key: u16, value: u32) -> RBTreeNode<Key, Value> {
    RBTreeNode::new(Box::new(key), Box::new(value), GFP_KERNEL).unwrap()
}

/// Does a step with the tree and with the model, and compares the results.
fn step(step: &Step, tree: &mut RBTree<Key, Value>, model: &mut BTreeMap<u16, u32>) {
    match *step {
        Step::Insert(key, value) => {
            let replaced = tree.insert(node(key, value));
            assert_eq!(replaced.is_some(), model.insert(key, value).is_some());
        }
        Step::Change(key, value) => {
            let (ours, its) = (tree.get_mut(&Box::new(key)), model.get_mut(&key));
            assert_eq!(ours.is_some(), its.is_some());
            if let (Some(ours), Some(its)) = (ours, its) {
                (**ours, *its) = (value, value);
            }
        }
        Step::Remove(key) => {
            let removed = tree.remove_node(&Box::new(key));
            assert_eq!(removed.is_some(), model.remove(&key).is_some());
        }
        Step::FindAndRemove(key) => {
            let found = tree.find_mut(&Box::new(key)).map(|entry| {
                let value = **entry.get();
                drop(entry.remove_node());
                value
            });
            assert_eq!(found, model.remove(&key));
        }
        Step::Reinsert(key) => {
            let node = tree.remove_node(&Box::new(key));
            assert_eq!(node.is_some(), model.contains_key(&key));
            if let Some(node) = node {
                assert!(tree.get(&Box::new(key)).is_none());
                assert!(tree.insert(node).is_none());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_tree_is_a_sorted_map(steps in steps()) {
        let (mut tree, mut model) = (RBTree::new(), BTreeMap::new());
        for one in &steps {
            step(one, &mut tree, &mut model);
            let all: Vec<_> = tree.iter().map(|(key, value)| (**key, **value)).collect();
            assert!(all.into_iter().eq(model.iter().map(|(&key, &value)| (key, value))));
        }
        for key in 0..42_u16 {
            let expected = model.get(&key).copied().map(Box::new);
            assert_eq!(tree.get(&Box::new(key)), expected.as_ref());
            let found = tree.cursor_lower_bound(&Box::new(key));
            let found = found.map(|cursor| (**cursor.current().0, **cursor.current().1));
            assert_eq!(found, model.range(key..).next().map(|(&key, &value)| (key, value)));
        }
    }
}

#[test]
fn a_node_is_one_piece_of_memory_and_inserting_takes_none() {
    let before = allocations();
    let nodes: Vec<_> = (0..100).map(|key| node(key, 0)).collect();
    assert_eq!(allocations(), before + 100);
    // The links of a node take 24 bytes, as in the kernel, the key and the value 8 each.
    assert_eq!(last_size(), 40);
    let mut tree = RBTree::new();
    for node in nodes {
        assert!(tree.insert(node).is_none());
    }
    assert_eq!(allocations(), before + 100);
}

#[test]
fn without_memory_there_is_no_node() {
    let live = AtomicUsize::new(0);
    fail(1);
    let none = RBTreeNode::new(1, Counted::new(&live), GFP_KERNEL);
    assert_eq!(none.err(), Some(ENOMEM));
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn a_tree_drops_what_is_in_it() {
    let live = AtomicUsize::new(0);
    let mut tree = RBTree::new();
    for key in 0..100 {
        let node = RBTreeNode::new(key, Counted::new(&live), GFP_KERNEL).unwrap();
        assert!(tree.insert(node).is_none());
    }
    assert_eq!(live.load(Ordering::Relaxed), 100);
    drop(tree);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}
