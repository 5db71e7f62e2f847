// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Metrics for Prometheus: those of `nvpm status --prometheus`, the state that `serve` has reached, and the
//! registrations that keep the module loaded. `serve` gives them to whoever asks its port.
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::decide::State;
use crate::node::Node;
use crate::owners::{Owner, owners};
use crate::program::said;
use crate::report::Status;

/// Several servers that ask at a time must not make this pod look at the node several times.
const KEPT: Duration = Duration::from_secs(10);

/// The metrics, which are made again at most every KEPT seconds.
pub struct Page {
    make: Box<dyn Fn() -> String + Send + Sync>,
    kept: Mutex<Option<(Instant, String)>>,
}

impl Page {
    pub fn new(make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), kept: Mutex::default() }
    }

    pub fn text(&self) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((made, text)) if made.elapsed() <= KEPT => text.clone(),
            _ => {
                let text = (self.make)();
                *kept = Some((Instant::now(), text.clone()));
                text
            }
        }
    }
}

/// Returns all metrics.
pub fn metrics(node: &Node, status: Option<&Status>) -> String {
    let (_, mut text) = said(&["nvpm", "status", "--prometheus"], Stdio::inherit());
    text += &of_pod(node, status, &owners(node));
    text
}

fn of_pod(node: &Node, status: Option<&Status>, owners: &[Owner]) -> String {
    let mut lines = vec!["# TYPE nv_peer_mem_pod_state gauge".to_owned()];
    let reached = status.map(|status| status.state);
    lines.extend(State::ALL.map(|state| {
        let here = u8::from(reached == Some(state));
        format!("nv_peer_mem_pod_state{{state=\"{}\"}} {here}", state.name())
    }));
    lines.push("# TYPE nv_peer_mem_pod_references gauge".to_owned());
    lines.push(format!("nv_peer_mem_pod_references {}", node.own().map_or(0, |own| own.references)));
    lines.push("# TYPE nv_peer_mem_pod_registrations gauge".to_owned());
    lines.extend(owners.iter().map(|owner| {
        let Owner { process, pod, registrations, .. } = owner;
        let command = quoted(&owner.command);
        let labels = format!("process=\"{process}\",command=\"{command}\",pod=\"{pod}\"");
        format!("nv_peer_mem_pod_registrations{{{labels}}} {registrations}")
    }));
    lines.join("\n") + "\n"
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn is_one(line: &str) -> bool {
        line.starts_with("nv_peer_mem_pod_state{") && line.ends_with(" 1")
    }

    #[test]
    fn of_the_pod() {
        let node = Files::new();
        node.load_own("nvidia_peermem", "2.0.0", 3);
        let (command, pod) = ("a\"b\\c\nd".to_owned(), "ml/trainer-0".to_owned());
        let held = Owner { process: 4711, command, pod, registrations: 2 };
        let status = Status { state: State::Held, reason: "why".to_owned(), at: Duration::ZERO };
        let text = of_pod(&node, Some(&status), &[held]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.iter().filter(|line| line.starts_with("nv_peer_mem_pod_state{")).count(), State::ALL.len());
        let ones: Vec<_> = lines.iter().filter(|line| is_one(line)).collect();
        assert_eq!(ones, [&"nv_peer_mem_pod_state{state=\"held\"} 1"]);
        assert!(lines.contains(&"nv_peer_mem_pod_references 3"));
        let labels = r#"process="4711",command="a\"b\\c\nd",pod="ml/trainer-0""#;
        assert!(lines.contains(&format!("nv_peer_mem_pod_registrations{{{labels}}} 2").as_str()), "{text}");
    }

    #[test]
    fn nothing_is_known() {
        let text = of_pod(&Files::new(), None, &[]);
        assert!(!text.lines().any(is_one));
        assert!(text.contains("\nnv_peer_mem_pod_references 0\n"));
    }

    #[test]
    fn the_metrics_are_made_once_for_several_servers() {
        let count = Arc::new(AtomicU32::new(0));
        let made = Arc::clone(&count);
        let page = Page::new(move || format!("m {}\n", made.fetch_add(1, Ordering::Relaxed)));
        assert_eq!([page.text(), page.text()], ["m 0\n", "m 0\n"]);
        let before = Instant::now().checked_sub(KEPT + Duration::from_secs(1)).unwrap();
        *page.kept.lock().unwrap() = Some((before, "old\n".to_owned()));
        assert_eq!((page.text().as_str(), count.load(Ordering::Relaxed)), ("m 1\n", 2));
    }
}
