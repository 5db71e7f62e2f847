// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the state of the pod that keeps the module on this node. The pod writes its state each second, so an old state
//! is that of a pod which has ended.
use std::rc::Rc;

use serde_json::Value;

use crate::read::machine::Machine;

const FILE: &str = "/run/nv-peer-mem/status.json";
/// The age in seconds at which the pod itself counts a state as old.
const OLD: u64 = 60;

/// `state` is one of the states of docs/kubernetes.md, `name` the name of the module, and `seconds` the time for which
/// the state has lasted.
#[derive(Debug, PartialEq, Eq)]
pub struct PodState {
    pub state: String,
    pub reason: String,
    pub name: String,
    pub seconds: u64,
}

pub fn pod_state(machine: &Machine) -> Rc<Option<PodState>> {
    fn compute(machine: &Machine) -> Option<PodState> {
        let uptime = machine.text("/proc/uptime");
        let now = uptime.split(['.', ' ']).next()?.parse().ok()?;
        of(&machine.all_text(&[FILE]), now)
    }
    machine.once(compute)
}

/// Returns the state in the text of the file, if it is new. Both times are those of the kernel's clock.
fn of(text: &str, now: u64) -> Option<PodState> {
    let found: Value = serde_json::from_str(text).ok()?;
    let word = |name: &str| Some(found.get(name)?.as_str()?.to_owned());
    let time = |name: &str| found.get(name)?.as_u64();
    if now.saturating_sub(time("at")?) > OLD {
        return None;
    }
    let seconds = now.saturating_sub(time("since")?);
    Some(PodState { state: word("state")?, reason: word("reason")?, name: word("name")?, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_state_counts() {
        let text =
            |at: u64| format!(r#"{{"at":{at},"name":"nv_peer_mem","reason":"because","since":70,"state":"ready"}}"#);
        let expected = PodState {
            state: "ready".to_owned(),
            reason: "because".to_owned(),
            name: "nv_peer_mem".to_owned(),
            seconds: 130,
        };
        assert_eq!(of(&text(140), 200), Some(expected));
        assert_eq!(of(&text(139), 200), None);
        // The pod has written between the two reads.
        assert!(of(&text(201), 200).is_some());
        for strange in ["", "{}", "[1]", r#"{"at":140,"since":70,"state":7,"reason":"","name":""}"#] {
            assert_eq!(of(strange, 200), None, "{strange}");
        }
    }
}
