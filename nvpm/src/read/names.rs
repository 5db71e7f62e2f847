// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Names of GPUs and RDMA devices, as people count them.
use indexmap::{IndexMap, IndexSet};

use crate::read::machine::Machine;
use crate::read::ways::{Pair, driven_gpus, usable_gpus};

/// Returns the number of each GPU in nvidia-smi, which numbers GPUs in the order of their addresses.
pub fn gpu_numbers(machine: &Machine) -> IndexMap<String, usize> {
    driven_gpus(machine).iter().enumerate().map(|(number, gpu)| (gpu.name.clone(), number)).collect()
}

/// Folds three or more names with consecutive numbers into "FIRST to LAST".
pub fn folded(names: &[String]) -> Vec<String> {
    let runs = names.chunk_by(|one, other| follows(one, other));
    runs.flat_map(|run| match run {
        [first, _, .., last] => vec![format!("{first} to {last}")],
        _ => run.to_vec(),
    })
    .collect()
}

/// Returns whether a name is another one with the next number.
fn follows(name: &str, other: &str) -> bool {
    let divided = |name: &'_ str| {
        let text = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let digits = name.get(text.len()..).unwrap_or_default();
        Some((text.to_owned(), digits.parse::<u64>().ok()?))
    };
    let (Some((one, number)), Some((two, next))) = (divided(name), divided(other)) else { return false };
    one == two && number.checked_add(1) == Some(next)
}

/// Returns the names of the RDMA devices of some pairs. If the pairs do not have all usable GPUs, adds the names of the
/// GPUs.
pub fn pair_names(machine: &Machine, pairs: &[Pair]) -> String {
    let devices: IndexSet<&String> = pairs.iter().map(|(_, device)| device).collect();
    let gpus: IndexSet<&String> = pairs.iter().map(|(gpu, _)| gpu).collect();
    let text = folded(&devices.into_iter().cloned().collect::<Vec<_>>()).join(", ");
    if gpus.len() == usable_gpus(machine).len() {
        return text;
    }
    let numbers = gpu_numbers(machine);
    let numbers: Vec<String> =
        gpus.iter().map(|name| numbers.get(*name).map_or(String::new(), ToString::to_string)).collect();
    format!("{text} and GPU {}", folded(&numbers).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_consecutive_numbers_are_folded() {
        let folded =
            |names: &[&str]| folded(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).join(" ");
        assert_eq!(folded(&["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_4", "mlx5_5"]), "mlx5_0 to mlx5_2 mlx5_4 mlx5_5");
        assert_eq!(folded(&["a", "b", "0", "1", "2"]), "a b 0 to 2");
        assert_eq!(folded(&["mlx5_9", "mlx5_10", "mlx5_11"]), "mlx5_9 to mlx5_11");
    }
}
