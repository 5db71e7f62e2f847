// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the lines of `nvpm status` that explain failures.
use crate::facts::all::status_of;
use crate::facts::fact::{Fact, Verdict};
use crate::read::machine::Machine;

/// Returns whether the fact can explain a failure. Facts about how programs detect GPUDirect RDMA, and facts about the
/// next boot, cannot explain a failure.
fn matters(fact: &Fact) -> bool {
    fact.section != "detection" && (fact.section.as_str(), fact.name.as_str()) != ("module", "on boot")
}

/// Returns whether a name is a word in the section or in the name of a fact.
fn is_about(fact: &Fact, name: &str) -> bool {
    fact.section.split_whitespace().chain(fact.name.split_whitespace()).any(|word| word == name)
}

/// Selects lines. Status is computed once, after the first failure. Each line is returned only once, because a defect
/// of the module concerns every pair.
pub struct Reasons<'m> {
    machine: &'m Machine,
    /// The names of all GPUs and RDMA devices.
    names: Vec<String>,
    facts: Option<Vec<Fact>>,
    said: Vec<Fact>,
}

impl<'m> Reasons<'m> {
    pub fn new(machine: &'m Machine, names: Vec<String>) -> Self {
        Self { machine, names, facts: None, said: Vec::new() }
    }

    /// Returns the bad facts that are about the pair or about no device. If there are no such facts, returns the
    /// warnings. Facts that were returned before are left out.
    pub fn of(&mut self, pair: [&str; 2]) -> Vec<Fact> {
        let machine = self.machine;
        let facts = self.facts.get_or_insert_with(|| status_of(machine).facts.into_iter().filter(matters).collect());
        let others: Vec<&String> = self.names.iter().filter(|name| !pair.contains(&name.as_str())).collect();
        let about = |fact: &&Fact| !others.iter().any(|name| is_about(fact, name));
        for verdict in [Verdict::Bad, Verdict::Warn] {
            let found: Vec<&Fact> = facts.iter().filter(about).filter(|fact| fact.verdict == verdict).collect();
            if !found.is_empty() {
                let is_fresh = |fact: &&&Fact| !self.said.contains(fact);
                let fresh: Vec<Fact> = found.iter().filter(is_fresh).copied().cloned().collect();
                self.said.extend(fresh.iter().cloned());
                return fresh;
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::fact::{bad, warn};

    const GPU: &str = "0000:03:00.0";
    const OTHER_GPU: &str = "0000:83:00.0";

    /// Returns the names of the facts that explain a failure of a pair.
    fn reasons(facts: &[Fact], pair: [&str; 2]) -> Vec<String> {
        let machine = Machine::new("/nonexistent");
        let names = [GPU, OTHER_GPU, "mlx5_0", "mlx5_1"].map(str::to_owned).to_vec();
        let mut reasons = Reasons::new(&machine, names);
        reasons.facts = Some(facts.to_vec());
        let found = reasons.of(pair).into_iter().map(|fact| fact.name).collect();
        assert!(reasons.of(pair).is_empty(), "each line is returned once");
        found
    }

    #[test]
    fn a_pair_is_explained_by_its_own_facts() {
        let card = bad("RDMA devices", "card mlx5_1", "has no driver");
        let far = warn("distance", &format!("{OTHER_GPU} nearest"), "SYS");
        let of_pair = warn("distance", &format!("{GPU} mlx5_0"), "SYS");
        let of_others = bad("RDMA device mlx5_1", "place", "not a PCI device");
        let module = warn("module", "state", "loaded, version 2.0.0");
        let first = [card, far, of_others.clone()];
        let second = [of_others, of_pair, module];
        assert!(reasons(&first, [GPU, "mlx5_0"]).is_empty());
        assert_eq!(reasons(&first, [GPU, "mlx5_1"]), ["card mlx5_1", "place"]);
        assert_eq!(reasons(&first, [OTHER_GPU, "mlx5_0"]), [format!("{OTHER_GPU} nearest")]);
        assert_eq!(reasons(&second, [GPU, "mlx5_0"]), [format!("{GPU} mlx5_0"), "state".to_owned()]);
        assert_eq!(reasons(&second, [GPU, "mlx5_1"]), ["place"]);
    }

    #[test]
    fn detection_and_the_next_boot_explain_nothing() {
        assert!(!matters(&warn("detection", "NCCL", "x")) && !matters(&bad("module", "on boot", "no")));
        assert!(matters(&bad("module", "state", "not loaded")));
    }
}
