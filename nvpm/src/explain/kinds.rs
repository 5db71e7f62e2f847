// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The kind of a name: whose symbol it is, which part of the system a module or a library is of, what a verb does.
use crate::explain::table::KINDS;

/// Returns the form of names at a placeholder.
pub fn form(of: &str) -> &'static str {
    match of {
        "module" => r"\b[A-Za-z][\w-]*",
        "library" => r"[\w.+-]+",
        "function" => r"\b[A-Za-z_][\w.]*",
        "component" => r"\b[A-Za-z][\w.+-]*",
        _ => r"\b[A-Za-z_]\w*",
    }
}

/// Returns the first kind that fits a name.
pub fn kind_of(of: &str, name: &str) -> Option<&'static str> {
    KINDS.iter().find(|kind| kind.of == of && kind.globs.iter().any(|glob| fits(glob, name))).map(|kind| kind.name)
}

/// Returns whether a name fits a text with stars, each of which stands for any letters.
fn fits(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|start| name.strip_prefix(start)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_letters() {
        for (glob, name, expected) in [
            ("nvme*", "nvme_rdma", true),
            ("*plugin*", "my-plugin-v2.so", true),
            ("ib_core", "ib_core2", false),
            ("libmlx*", "xlibmlx5.so", false),
        ] {
            assert_eq!(fits(glob, name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn the_symbol_has_the_kind_of_its_owner() {
        assert_eq!(kind_of("symbol", "ib_register_peer_memory_client"), Some("peer"));
        assert_eq!(kind_of("symbol", "nvme_init_ctrl_finish"), Some("storage"));
        assert_eq!(kind_of("verb", "mlx5dv_devx_obj_create"), Some("devx"));
        assert_eq!(kind_of("verb", "ibv_unheard_of"), None);
    }
}
