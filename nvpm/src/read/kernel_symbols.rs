// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the kernel's list of functions. The list shows whether the RDMA core has peer memory and dma-buf, and which
//! drivers have the verb for dma-buf.
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::read::machine::{Machine, decoded};

const PEER_MEMORY: &str = "ib_register_peer_memory_client";
const DMA_BUF: &str = "ib_umem_dmabuf_get";
/// A driver's verb, as in `mlx5_ib_reg_user_mr_dmabuf`.
const VERB: &str = "_reg_user_mr_dmabuf";

/// Returns the module of each wanted function. In the list, the compiler may have added a suffix to a function's name,
/// and the name of a module stands in brackets. If a name stands there several times, the first one counts.
fn symbols(machine: &Machine) -> Rc<HashMap<String, String>> {
    fn compute(machine: &Machine) -> HashMap<String, String> {
        // The kernel takes long to print its list, and without the RDMA core it has none of these functions. The core
        // makes this class, also if it is a part of the kernel itself.
        if !machine.loaded("ib_core") && !machine.exists("/sys/class/infiniband") {
            return HashMap::new();
        }
        of_list(&machine.read("/proc/kallsyms"))
    }
    machine.once(compute)
}

fn of_list(data: &[u8]) -> HashMap<String, String> {
    let mut begins: Vec<usize> = Vec::new();
    for word in [PEER_MEMORY, DMA_BUF, VERB] {
        let begin_of = |at| memchr::memrchr(b'\n', data.get(..at).unwrap_or_default()).map_or(0, |end| end + 1);
        begins.extend(memchr::memmem::find_iter(data, word.as_bytes()).map(begin_of));
    }
    begins.sort_unstable();
    begins.dedup();
    let mut found = HashMap::new();
    for begin in begins {
        let line = data.get(begin..).and_then(|rest| rest.split(|byte| *byte == b'\n').next());
        if let Some((name, module)) = line.and_then(wanted) {
            found.entry(name).or_insert(module);
        }
    }
    found
}

/// Returns the function and the module of a line, which has an address, a type, the name, and perhaps the module.
fn wanted(line: &[u8]) -> Option<(String, String)> {
    let line = decoded(line);
    let mut fields = line.split([' ', '\t']).filter(|field| !field.is_empty()).skip(2);
    let full = fields.next()?;
    let name = full.split('.').next()?;
    let is_wanted = name == PEER_MEMORY || name == DMA_BUF || name.strip_suffix(VERB).is_some_and(|it| !it.is_empty());
    let module = match fields.next() {
        Some(module) => module.strip_prefix('[')?.strip_suffix(']')?.to_owned(),
        None => "the kernel itself".to_owned(),
    };
    is_wanted.then(|| (name.to_owned(), module))
}

/// Returns the module that has the function by which clients register; an empty string if no module has this function.
pub fn peer_memory_in(machine: &Machine) -> String {
    symbols(machine).get(PEER_MEMORY).cloned().unwrap_or_default()
}

/// Returns the module that imports a dma-buf for drivers; an empty string if no module does.
pub fn dma_buf_in(machine: &Machine) -> String {
    symbols(machine).get(DMA_BUF).cloned().unwrap_or_default()
}

/// Returns the drivers that have the verb for dma-buf. The name of the verb's function begins with the name of the
/// driver.
pub fn dma_buf_drivers(machine: &Machine) -> Rc<BTreeSet<String>> {
    fn compute(machine: &Machine) -> BTreeSet<String> {
        symbols(machine).keys().filter_map(|name| Some(name.strip_suffix(VERB)?.to_owned())).collect()
    }
    machine.once(compute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_function_and_its_module() {
        let found = |line: &str| wanted(line.as_bytes()).map(|(name, module)| format!("{name} {module}"));
        assert_eq!(
            found("ffffffffc0a01230 T ib_register_peer_memory_client\t[ib_core]").as_deref(),
            Some("ib_register_peer_memory_client ib_core")
        );
        assert_eq!(
            found("0000000000000000 t mlx5_ib_reg_user_mr_dmabuf.cold\t[mlx5_ib]").as_deref(),
            Some("mlx5_ib_reg_user_mr_dmabuf mlx5_ib")
        );
        assert_eq!(
            found("0000000000000000 T ib_umem_dmabuf_get").as_deref(),
            Some("ib_umem_dmabuf_get the kernel itself")
        );
        assert_eq!(found("0000000000000000 t __ksymtab_ib_umem_dmabuf_get\t[ib_uverbs]"), None);
        assert_eq!(found("0000000000000000 T ib_umem_dmabuf_get_pinned\t[ib_uverbs]"), None);
        assert_eq!(found("0000000000000000 T _reg_user_mr_dmabuf\t[x]"), None);
    }

    #[test]
    fn the_first_line_of_a_function_counts() {
        let list = b"0 T ib_umem_dmabuf_get\t[one]\n0 t other\n0 T ib_umem_dmabuf_get\t[two]\n\
                     0 t efa_reg_user_mr_dmabuf\t[efa]\n0 T ib_register_peer_memory_client\t[ib_core]";
        let found = of_list(list);
        let module = |name: &str| found.get(name).map(String::as_str);
        assert_eq!(module(DMA_BUF), Some("one"));
        assert_eq!(module("efa_reg_user_mr_dmabuf"), Some("efa"));
        assert_eq!(module(PEER_MEMORY), Some("ib_core"));
        assert_eq!(found.len(), 3);
        assert!(of_list(b"").is_empty());
    }
}
