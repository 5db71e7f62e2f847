// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Sorted maps, which the kernel's `lib/rbtree.c` balances. A node is allocated before it is
//! inserted, so only [`RBTreeNode::new`] may sleep, and insertion may run under a spin lock.

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

/// C's `struct rb_node`; `kernel.c` asserts this layout.
#[repr(C)]
struct Links {
    parent_and_color: usize,
    right: *mut Links,
    left: *mut Links,
}

// `root` must point to the root of a tree to which the caller has exclusive access. These functions
// are callable from any context.
extern "C" {
    /// Balances the tree after the caller has linked `node` into the tree. `node` must have no
    /// children.
    fn rb_insert_color(node: *mut Links, root: *mut *mut Links);
    /// Removes `node` from the tree. `node` must be in the tree.
    fn rb_erase(node: *mut Links, root: *mut *mut Links);
    /// Returns the node after `node` in its tree, or null.
    fn rb_next(node: *const Links) -> *mut Links;
}

/// A node of a tree. `links` is the first field, so that a pointer to `links` is also a pointer to
/// the node.
#[repr(C)]
struct Node<K, V> {
    links: Links,
    key: K,
    value: V,
}

/// A node that is in no tree.
pub struct RBTreeNode<K, V>(KBox<Node<K, V>>);

impl<K, V> RBTreeNode<K, V> {
    /// Allocates a node.
    pub fn new(key: K, value: V, flags: Flags) -> Result<Self> {
        let links = Links {
            parent_and_color: 0,
            right: null_mut(),
            left: null_mut(),
        };
        Ok(Self(KBox::new(Node { links, key, value }, flags)?))
    }
}

/// A map of keys to values in the order of the keys.
///
/// # Invariants
///
/// `root` is null or the root of a tree that only C code balances. Each node of the tree is the
/// `links` of a `Node<K, V>` from `KBox::into_raw`, and only this tree owns the node. The nodes are
/// in the order of their keys, and no two nodes have the same key.
pub struct RBTree<K, V> {
    root: *mut Links,
    owned: PhantomData<Node<K, V>>,
}

// SAFETY: A tree owns its nodes, which hold keys, values, and pointers to nodes of the same tree.
unsafe impl<K: Send, V: Send> Send for RBTree<K, V> {}
// SAFETY: A shared tree returns keys and values only for reading.
unsafe impl<K: Sync, V: Sync> Sync for RBTree<K, V> {}

impl<K, V> RBTree<K, V> {
    /// Makes an empty tree.
    pub fn new() -> Self {
        // INVARIANT: There are no nodes.
        Self {
            root: null_mut(),
            owned: PhantomData,
        }
    }

    /// Returns the entries, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (mut next, mut left) = (null_mut(), self.root);
        while !left.is_null() {
            next = left;
            // SAFETY: By the invariant, the root and the children of nodes are null or valid nodes.
            // The borrow of the tree keeps the nodes unchanged.
            left = unsafe { (*next).left };
        }
        from_fn(move || {
            let links = NonNull::new(next)?;
            // SAFETY: By the invariant, `links` belongs to a valid node. The iterator and its
            // results borrow the tree, which keeps the node unchanged.
            let node = unsafe { links.cast::<Node<K, V>>().as_ref() };
            // SAFETY: `links` is a node of the tree, which the borrow keeps unchanged.
            next = unsafe { rb_next(links.as_ptr()) };
            Some((&node.key, &node.value))
        })
    }

    /// Removes a node from the tree.
    ///
    /// # Safety
    ///
    /// `node` must be in the tree.
    unsafe fn detach(&mut self, node: NonNull<Node<K, V>>) -> RBTreeNode<K, V> {
        // SAFETY: By the requirement `node` is in the tree, which `&mut self` borrows exclusively.
        unsafe { rb_erase(node.as_ptr().cast(), &mut self.root) };
        // SAFETY: By the invariant, `node` is from `into_raw`. The node is not in the tree any
        // more, so no other call turns this pointer back into a box.
        RBTreeNode(unsafe { KBox::from_raw(node.as_ptr()) })
    }
}

impl<K: Ord, V> RBTree<K, V> {
    /// Returns the tree's first node whose key is not below `key`.
    fn lower_bound(&self, key: &K) -> Option<NonNull<Node<K, V>>> {
        let (mut bound, mut next) = (None, self.root.cast::<Node<K, V>>());
        // SAFETY: By the invariant, the root and the children of nodes are null or valid nodes. The
        // borrow of the tree keeps the nodes unchanged.
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

    /// Returns the tree's node with this key.
    fn find(&self, key: &K) -> Option<NonNull<Node<K, V>>> {
        // SAFETY: A node of the tree is valid, and the borrow of the tree keeps it unchanged.
        let equal = |node: &NonNull<Node<K, V>>| unsafe { node.as_ref() }.key == *key;
        self.lower_bound(key).filter(equal)
    }

    /// Inserts a node. Returns the entry that had the same key before, if there was one.
    pub fn insert(&mut self, mut node: RBTreeNode<K, V>) -> Option<RBTreeNode<K, V>> {
        let mut parent = null_mut::<Node<K, V>>();
        let mut place: *mut *mut Links = &mut self.root;
        // SAFETY: `place` points to the root or to a child of `parent`. By the invariant, both are
        // null or valid nodes, and `&mut self` borrows the tree exclusively.
        while let Some(other) = unsafe { (*place).cast::<Node<K, V>>().as_mut() } {
            parent = other;
            place = match node.0.key.cmp(&other.key) {
                Ordering::Less => &mut other.links.left,
                Ordering::Greater => &mut other.links.right,
                Ordering::Equal => {
                    // INVARIANT: The keys are equal, so the order stays the same.
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
        // INVARIANT: The comparisons with the keys of all nodes above `place` have led to `place`,
        // so the node is in order at `place`.
        // SAFETY: `place` points to the root or to a child of `parent`, and is null there, so no
        // node is lost. The node is linked to its parent and has no children. Only C code balances
        // the tree (the type's invariant), and `&mut self` borrows the tree exclusively.
        unsafe {
            *place = node;
            rb_insert_color(node, &mut self.root);
        }
        None
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        // SAFETY: A node of the tree is valid, and the value borrows the tree.
        self.find(key).map(|node| unsafe { &node.as_ref().value })
    }

    /// Returns the value of a key. The caller may change the value.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        // SAFETY: A node of the tree is valid, and the value borrows the tree exclusively.
        self.find(key)
            .map(|mut node| unsafe { &mut node.as_mut().value })
    }

    /// Returns the entry of a key.
    pub fn find_mut(&mut self, key: &K) -> Option<OccupiedEntry<'_, K, V>> {
        // INVARIANT: `find` returns nodes of the tree.
        self.find(key)
            .map(|node| OccupiedEntry { tree: self, node })
    }

    /// Removes the node of a key, and returns it.
    pub fn remove_node(&mut self, key: &K) -> Option<RBTreeNode<K, V>> {
        // SAFETY: `find` returns nodes of the tree.
        self.find(key).map(|node| unsafe { self.detach(node) })
    }

    /// Returns a cursor at the first key that is not below `key`.
    pub fn cursor_lower_bound(&mut self, key: &K) -> Option<Cursor<'_, K, V>> {
        // SAFETY: A node of the tree is valid, and the cursor borrows the tree.
        self.lower_bound(key)
            .map(|node| Cursor(unsafe { node.as_ref() }))
    }
}

/// An entry of a tree.
///
/// # Invariants
///
/// `node` is in `tree`.
pub struct OccupiedEntry<'a, K, V> {
    tree: &'a mut RBTree<K, V>,
    node: NonNull<Node<K, V>>,
}

impl<K, V> OccupiedEntry<'_, K, V> {
    /// Returns the value.
    pub fn get(&self) -> &V {
        // SAFETY: By the invariant the node is in the tree, so it is valid. The entry borrows the
        // tree, so the node does not change while the value is borrowed.
        unsafe { &self.node.as_ref().value }
    }

    /// Removes the node from the tree, and returns it.
    pub fn remove_node(self) -> RBTreeNode<K, V> {
        // SAFETY: By the invariant the node is in the tree.
        unsafe { self.tree.detach(self.node) }
    }
}

/// A place in a tree.
pub struct Cursor<'a, K, V>(&'a Node<K, V>);

impl<K, V> Cursor<'_, K, V> {
    /// Returns the key and the value at this place.
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
