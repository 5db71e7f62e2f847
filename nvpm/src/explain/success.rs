// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects the lines by which a program says that GPUDirect RDMA is in use. A line that says that it could be used, as
//! NCCL's "DMA-BUF is available", proves nothing.
use std::collections::BTreeSet;

use indexmap::IndexMap;

const MOST_NAMES: usize = 4096;

#[derive(Default)]
struct Channels {
    with: usize,
    all: usize,
}

#[derive(Default)]
pub struct Success {
    /// NCCL's channels to other nodes, by host.
    channels: IndexMap<String, Channels>,
    ways: BTreeSet<&'static str>,
    /// The networks that NCCL's channels with GPUDirect RDMA use.
    networks: BTreeSet<String>,
    /// The devices by which UCX sends GPU memory without a copy.
    lanes: BTreeSet<String>,
    /// The way by which perftest has registered a buffer of the GPU.
    perftest: Option<&'static str>,
    /// Whether perftest has printed a result for that buffer.
    is_measured: bool,
    /// Whether the lines of UCX's last table are about GPU memory.
    of_gpu: bool,
}

impl Success {
    pub fn is_about(line: &str) -> bool {
        is_result(line)
            || ["via NET/", "GPU Direct RDMA (", "zero-copy", "ucp_context", " by ucp_", "GPU buffer address"]
                .iter()
                .any(|word| line.contains(word))
    }

    pub fn read(&mut self, host: &str, line: &str) {
        if let Some((_, network)) = line.split_once("via NET/") {
            self.read_channel(host, network);
        } else if line.contains("GPU Direct RDMA (") && line.to_ascii_lowercase().contains("enabled") {
            let way = if line.contains("DMABUF") || line.contains("DMA-BUF") { "dma-buf" } else { "pointer" };
            self.ways.insert(way);
        } else if line.contains("GPU buffer address") {
            let is_dmabuf = line.contains("DMA-BUF") || self.perftest == Some("dma-buf");
            self.perftest = Some(if is_dmabuf { "dma-buf" } else { "pointer" });
        } else if is_result(line) {
            self.is_measured |= self.perftest.is_some();
        } else if line.contains("ucp_") {
            self.of_gpu = line.contains("cuda") || line.contains("rocm");
        } else if self.of_gpu && line.contains("zero-copy") {
            let lane = line.split(['|', ' ']).find(|word| {
                ["rc_", "dc_", "ud_", "srd"].iter().any(|transport| word.starts_with(transport)) && word.contains('/')
            });
            if self.lanes.len() < MOST_NAMES {
                self.lanes.extend(lane.map(str::to_owned));
            }
        }
    }

    fn read_channel(&mut self, host: &str, network: &str) {
        // Most lines are of a host that is known.
        if !self.channels.contains_key(host) {
            if self.channels.len() >= MOST_NAMES {
                return;
            }
            self.channels.insert(host.to_owned(), Channels::default());
        }
        let Some(channels) = self.channels.get_mut(host) else { return };
        channels.all += 1;
        if network.contains("/GDRDMA") {
            channels.with += 1;
            let name = network.split('/').next().unwrap_or_default();
            if self.networks.len() < MOST_NAMES && !self.networks.contains(name) {
                self.networks.insert(name.to_owned());
            }
        }
    }

    /// Returns what the log says about the use of GPUDirect RDMA, as sentences without a full stop.
    pub fn sentences(&self) -> Vec<String> {
        let mut found = Vec::new();
        let with: usize = self.channels.values().map(|one| one.with).sum();
        let all: usize = self.channels.values().map(|one| one.all).sum();
        if with > 0 {
            let ways: Vec<&str> = self.ways.iter().copied().collect();
            let by = if ways.is_empty() { String::new() } else { format!(", by {}", ways.join(" and by ")) };
            let networks: Vec<&str> = self.networks.iter().map(String::as_str).collect();
            found.push(format!(
                "NCCL uses GPUDirect RDMA on {with} of {all} channels{by}, with {}",
                networks.join(", ")
            ));
        } else if all > 0 {
            found.push(format!("NCCL uses GPUDirect RDMA on none of {all} channels to other nodes"));
        }
        let differing: Vec<&str> = self.differing();
        if !differing.is_empty() {
            found.push(format!("Without GPUDirect RDMA: {}", differing.join(", ")));
        }
        if !self.lanes.is_empty() {
            let lanes: Vec<&str> = self.lanes.iter().map(String::as_str).take(4).collect();
            found.push(format!("UCX uses GPUDirect RDMA: it sends GPU memory without a copy by {}", lanes.join(", ")));
        }
        if let Some(way) = self.perftest.filter(|_| self.is_measured) {
            found.push(format!("perftest moves GPU memory by RDMA, and has registered it by {way}"));
        }
        found
    }

    /// Returns whether a program uses GPUDirect RDMA.
    pub fn is_used(&self) -> bool {
        self.channels.values().any(|one| one.with > 0) || !self.lanes.is_empty() || self.is_measured
    }

    /// Returns the hosts without GPUDirect RDMA, if others have it.
    fn differing(&self) -> Vec<&str> {
        let any = self.channels.values().any(|one| one.with > 0);
        let without = self.channels.iter().filter(|(host, one)| any && one.with == 0 && !host.is_empty());
        without.map(|(host, _)| host.as_str()).take(8).collect()
    }
}

/// Returns whether a line is one of perftest's results: bytes, iterations, and rates or times that are not 0.
fn is_result(line: &str) -> bool {
    let columns: Vec<Option<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    (4..=12).contains(&columns.len())
        && columns.iter().all(Option::is_some)
        && line.contains('.')
        && columns.iter().skip(2).take(2).all(|value| value.is_some_and(|value| value > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_counted_and_the_node_without_is_named() {
        let mut success = Success::default();
        success.read("a", "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA");
        success.read("a", "Channel 01/0 : 0[0] -> 8[0] [send] via NET/IB/1/GDRDMA");
        success.read("b", "Channel 00/0 : 8[0] -> 0[0] [send] via NET/IB/0");
        success.read("a", "NET/IB : GPU Direct RDMA (DMABUF) enabled for HCA 0 'mlx5_0'");
        assert_eq!(
            success.sentences(),
            ["NCCL uses GPUDirect RDMA on 2 of 3 channels, by dma-buf, with IB", "Without GPUDirect RDMA: b"]
        );
    }

    #[test]
    fn a_result_of_perftest_with_a_buffer_of_the_gpu_is_a_use() {
        let mut success = Success::default();
        let result = " 65536      5000             196.31             196.02             0.373878";
        success.read("", result);
        assert!(!success.is_used());
        success.read("", "allocated 131072 bytes of GPU buffer at address");
        success.read("", "allocated GPU buffer address at 00007f4a40000000 pointer=0x7f4a40000000");
        assert!(!success.is_used());
        success.read("", " 65536      5000             0.00               0.00               0.000000");
        assert!(!success.is_used());
        success.read("", result);
        assert_eq!(success.sentences(), ["perftest moves GPU memory by RDMA, and has registered it by pointer"]);
    }

    #[test]
    fn a_capability_is_no_use() {
        let mut success = Success::default();
        success.read("a", "DMA-BUF is available on GPU device 0");
        assert!(success.sentences().is_empty());
    }
}
