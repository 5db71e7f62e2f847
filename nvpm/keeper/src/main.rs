// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The program of the container image (docs/kubernetes.md): `serve` keeps the module on a node of a cluster, `unload`
//! lets the module go, and `probe` tells whether GPU memory can be registered.
#![forbid(unsafe_code)]
mod actions;
mod build;
mod cache;
mod checksum;
mod compiler;
mod decide;
mod disk;
#[cfg(test)]
mod files;
mod hooks;
mod kernel;
mod metrics;
mod node;
mod owners;
mod places;
mod port;
mod probe;
mod program;
mod report;
mod root_programs;
mod serve;
mod settings;
mod sign;
mod unload;

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use nvpm_foreign::stop;

use crate::actions::Here;
use crate::cache::Cache;
use crate::node::Node;
use crate::report::{DIRECTORY, Report, say};
use crate::serve::Keeper;
use crate::settings::{CACHE, RELEASE};

const USAGE: &str = "\
Usage: nv-peer-mem serve | unload | probe [--selftest] | metrics
  serve    waits for NVIDIA's driver and the RDMA core, builds the module for them, loads it, and
           does so again when one of them is replaced; unloads it when the container ends
  unload   unloads the module, and has serve leave it unloaded until the container starts again
  probe    exits with 0 if the module is registered with the RDMA core, and prints the state
           --selftest  also registers GPU memory; the container needs a GPU and RDMA devices
  metrics  prints what the port of serve gives to Prometheus
Environment of serve:
  NVPM_NAME=         nvidia_peermem or nv_peer_mem: the module's name  (default: nvidia_peermem)
  NVPM_PARAMETERS=   parameters of the module                          (default: none)
  NVPM_METRICS_PORT= port for Prometheus, /metrics; 0: none            (default: 9989)
";

fn main() -> ExitCode {
    // The programs that this one starts must behave the same in every locale.
    nvpm_foreign::environment::set_alone("LC_ALL", "C");
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (node, directory) = (Node::new(""), Path::new(DIRECTORY));
    match words.as_slice() {
        ["serve"] => match serve(node, directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(wrong) => {
                say(&format!("{wrong}."));
                ExitCode::from(2)
            }
        },
        ["unload"] => ExitCode::from(unload::unload(&node, directory)),
        ["probe"] => ExitCode::from(probe::probe(&node, directory)),
        ["probe", "--selftest"] => match probe::probe(&node, directory) {
            0 => ExitCode::from(probe::selftest()),
            code => ExitCode::from(code),
        },
        ["metrics"] => ExitCode::from(u8::from(write(io::stdout(), &metrics()).is_err())),
        ["--help" | "-h"] => ExitCode::from(u8::from(write(io::stderr(), USAGE).is_err())),
        _ => {
            // The exit code says the same.
            let _ = write(io::stderr(), USAGE);
            ExitCode::from(2)
        }
    }
}

fn write(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush())
}

/// Returns what the port of serve gives to Prometheus.
fn metrics() -> String {
    metrics::metrics(&Node::new(""), report::read(Path::new(DIRECTORY)).as_ref())
}

/// Keeps the module until a signal comes. Returns what has kept this from beginning.
fn serve(node: Node, directory: &Path) -> Result<(), String> {
    let settings = settings::settings(variable, Path::new(RELEASE))?;
    let cache = Cache::new(Path::new(CACHE))?;
    let told = Report::new(directory, say);
    let told = told.map_err(|error| format!("{DIRECTORY} cannot be made: {error}"))?;
    stop::count_signals().map_err(|error| format!("signals cannot be noticed: {error}"))?;
    if settings.port > 0 {
        // The module is kept also without metrics.
        if let Err(error) = port::serve_metrics(settings.port, metrics) {
            say(&format!("no metrics on port {}: {error}", settings.port));
        }
    }
    let stops = || stop::signals() > 0;
    serve::serve(Keeper::new(node, settings, cache, told, Here(stops)), stops);
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
