// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Sorted maps, as `lib/rbtree.c` of the kernel balances them. Nodes are allocated before they are
//! inserted, so nothing here sleeps but [`RBTreeNode::new`].

use core::{
    cmp::Ordering,
    iter::from_fn,
    marker::PhantomData,
    mem::swap,
    ptr::{null_mut, NonNull},
};

use crate::{
    alloc::{Flags, KBox},
    error::Result,
};

/// C's `struct rb_node`; `kernel.c` asserts that it is laid out like that.
#[repr(C)]
struct Links {
    parent_and_color: usize,
    right: *mut Links,
    left: *mut Links,
}

// `root` is valid, and what it points to is a tree that these functions balance. May be called in
// any context; nobody else uses the tree meanwhile.
extern "C" {
    /// Balances the tree, into which `node` has just been linked, without children.
    fn rb_insert_color(node: *mut Links, root: *mut *mut Links);
    /// Takes `node`, which is in the tree, out of it.
    fn rb_erase(node: *mut Links, root: *mut *mut Links);
    /// The node behind `node`, which is in a tree, or null.
    fn rb_next(node: *const Links) -> *mut Links;
}

/// `links` is first, so that a pointer to it is one to the node.
#[repr(C)]
struct Node<K, V> {
    links: Links,
    key: K,
    value: V,
}

/// A node that is in no tree.
pub struct RBTreeNode<K, V>(KBox<Node<K, V>>);

impl<K, V> RBTreeNode<K, V> {
    /// Allocates it.
    pub fn new(key: K, value: V, flags: Flags) -> Result<Self> {
        let links = Links {
            parent_and_color: 0,
            right: null_mut(),
            left: null_mut(),
        };
        Ok(Self(KBox::new(Node { links, key, value }, flags)?))
    }

    /// Takes out what is in it.
    pub fn to_key_value(self) -> (K, V) {
        let node = KBox::into_inner(self.0);
        (node.key, node.value)
    }
}

/// A map of keys to values in the order of the keys.
///
/// # Invariants
///
/// `root` is null or the root of a tree that C balances. Its nodes are the `links` of `Node<K, V>`
/// from `KBox::into_raw`, which are this tree's own, and in the order of their keys, each of which
/// is there once.
pub struct RBTree<K, V> {
    root: *mut Links,
    owned: PhantomData<Node<K, V>>,
}

// SAFETY: It owns its nodes, which hold keys and values, and pointers to other nodes of its own.
unsafe impl<K: Send, V: Send> Send for RBTree<K, V> {}
// SAFETY: A shared tree gives out keys and values for reading, and nothing else.
unsafe impl<K: Sync, V: Sync> Sync for RBTree<K, V> {}

impl<K, V> RBTree<K, V> {
    /// An empty one.
    pub fn new() -> Self {
        // INVARIANT: There are no nodes.
        Self {
            root: null_mut(),
            owned: PhantomData,
        }
    }

    /// All that is there, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (mut next, mut left) = (null_mut(), self.root);
        while !left.is_null() {
            next = left;
            // SAFETY: By the invariant the root and the children of nodes are null or valid nodes,
            // and nobody changes them, since the tree is borrowed.
            left = unsafe { (*next).left };
        }
        from_fn(move || {
            let links = NonNull::new(next)?;
            // SAFETY: By the invariant of the tree, which is borrowed for reading as long as the
            // iterator and what it returns, this is a valid node of it.
            let node = unsafe { links.cast::<Node<K, V>>().as_ref() };
            // SAFETY: As above, it is in the tree.
            next = unsafe { rb_next(links.as_ptr()) };
            Some((&node.key, &node.value))
        })
    }

    /// Takes a node out.
    ///
    /// # Safety
    ///
    /// `node` is in the tree.
    unsafe fn detach(&mut self, node: NonNull<Node<K, V>>) -> RBTreeNode<K, V> {
        // SAFETY: By the requirement it is in the tree, which C balances by the invariant, and which
        // is borrowed for writing.
        unsafe { rb_erase(node.as_ptr().cast(), &mut self.root) };
        // SAFETY: By the invariant it is from `into_raw`. It is not in the tree any more, so nobody
        // takes it back again.
        RBTreeNode(unsafe { KBox::from_raw(node.as_ptr()) })
    }
}

impl<K: Ord, V> RBTree<K, V> {
    /// The first node whose key is not below `key`. A node of the tree.
    fn lower_bound(&self, key: &K) -> Option<NonNull<Node<K, V>>> {
        let (mut bound, mut next) = (None, self.root.cast::<Node<K, V>>());
        // SAFETY: By the invariant the root and the children of nodes are null or valid nodes, and
        // nobody changes them, since the tree is borrowed.
        while let Some(node) = unsafe { next.as_ref() } {
            next = if node.key < *key {
                node.links.right.cast()
            } else {
                bound = NonNull::new(next);
                node.links.left.cast()
            };
        }
        bound
    }

    /// The node of `key`. A node of the tree.
    fn find(&self, key: &K) -> Option<NonNull<Node<K, V>>> {
        // SAFETY: A node of the tree is valid, and nobody changes it, since the tree is borrowed.
        let equal = |node: &NonNull<Node<K, V>>| unsafe { node.as_ref() }.key == *key;
        self.lower_bound(key).filter(equal)
    }

    /// Inserts a node. If its key was there, what was there is returned.
    pub fn insert(&mut self, mut node: RBTreeNode<K, V>) -> Option<RBTreeNode<K, V>> {
        let mut parent = null_mut::<Node<K, V>>();
        let mut place: *mut *mut Links = &mut self.root;
        // SAFETY: `place` points to the root or to a child of `parent`. By the invariant these are
        // null or valid nodes, and the tree is borrowed for writing: nobody else uses them.
        while let Some(other) = unsafe { (*place).cast::<Node<K, V>>().as_mut() } {
            parent = other;
            place = match node.0.key.cmp(&other.key) {
                Ordering::Less => &mut other.links.left,
                Ordering::Greater => &mut other.links.right,
                Ordering::Equal => {
                    // INVARIANT: The keys are equal: their order stays.
                    swap(&mut other.key, &mut node.0.key);
                    swap(&mut other.value, &mut node.0.value);
                    return Some(node);
                }
            };
        }
        node.0.links = Links {
            parent_and_color: parent as usize,
            right: null_mut(),
            left: null_mut(),
        };
        let node = KBox::into_raw(node.0).cast();
        // INVARIANT: The keys of the nodes above it have led to `place`: it is in order there.
        // SAFETY: `place` is valid as above, and null, so nothing is lost. The node has its parent
        // and no children. The tree is one that C balances, by the invariant.
        unsafe {
            *place = node;
            rb_insert_color(node, &mut self.root);
        }
        None
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        // SAFETY: A node of the tree is valid, and the tree is borrowed as the value is.
        self.find(key).map(|node| unsafe { &node.as_ref().value })
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        // SAFETY: As in `get`; the tree is borrowed for writing.
        self.find(key)
            .map(|mut node| unsafe { &mut node.as_mut().value })
    }

    /// Takes the node of a key out.
    pub fn remove_node(&mut self, key: &K) -> Option<RBTreeNode<K, V>> {
        // SAFETY: `find` returns nodes of the tree.
        self.find(key).map(|node| unsafe { self.detach(node) })
    }

    /// Takes a key out, and frees its node.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_node(key).map(|node| node.to_key_value().1)
    }

    /// Where the first key is that is not below `key`.
    pub fn cursor_lower_bound(&mut self, key: &K) -> Option<Cursor<'_, K, V>> {
        // SAFETY: A node of the tree is valid, and the tree is borrowed as the cursor is.
        self.lower_bound(key)
            .map(|node| Cursor(unsafe { node.as_ref() }))
    }
}

/// A place in a tree.
pub struct Cursor<'a, K, V>(&'a Node<K, V>);

impl<K, V> Cursor<'_, K, V> {
    /// What is there.
    pub fn current(&self) -> (&K, &V) {
        (&self.0.key, &self.0.value)
    }
}

impl<K, V> Drop for RBTree<K, V> {
    fn drop(&mut self) {
        while let Some(root) = NonNull::new(self.root.cast()) {
            // SAFETY: The root is a node of the tree.
            drop(unsafe { self.detach(root) });
        }
    }
}
