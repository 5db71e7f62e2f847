// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Loads the module into the kernel, and unloads it. Nothing is forced: a module that is in use stays.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::code;

/// The kernel has refused. The text is that of insmod or rmmod.
#[derive(Debug)]
pub struct Refused(pub String);

/// Loads modules in this order, the last one with PARAMETERS.
pub fn load(files: &[PathBuf], parameters: &[String]) -> Result<(), Refused> {
    commands(files, parameters, Path::new("/sys/module")).iter().try_for_each(|command| call(command))
}

/// Returns the commands that load modules, of which those in the directory MODULES are loaded. All but the last one,
/// such as the callback module, stay loaded until the next boot. If the last one has a namesake that is loaded, the
/// kernel refuses.
fn commands(files: &[PathBuf], parameters: &[String], modules: &Path) -> Vec<Vec<String>> {
    let Some((last, others)) = files.split_last() else { return Vec::new() };
    let insmod = |file: &Path| vec!["insmod".to_owned(), file.display().to_string()];
    let is_loaded = |file: &&PathBuf| file.file_stem().is_some_and(|name| modules.join(name).exists());
    let mut found: Vec<_> = others.iter().filter(|file| !is_loaded(file)).map(|file| insmod(file)).collect();
    found.push([insmod(last), parameters.to_vec()].concat());
    found
}

pub fn unload(name: &str) -> Result<(), Refused> {
    call(&["rmmod", name])
}

fn call<S: AsRef<str>>(command: &[S]) -> Result<(), Refused> {
    let Some((name, words)) = command.split_first() else { return Ok(()) };
    let (name, words) = (name.as_ref(), words.iter().map(AsRef::as_ref));
    let ended = Command::new(name).args(words).stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| Refused(format!("{name} cannot be started: {error}")))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = if ended.stderr.is_empty() { ended.stdout } else { ended.stderr };
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Err(Refused(if said.is_empty() { format!("{name} has ended with {}", code(ended.status)) } else { said }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Directory;
    use std::fs;

    const CALLBACK: &str = "insmod /cache/nv_peer_mem_callback.ko";
    const MODULE: &str = "insmod /cache/nv_peer_mem.ko persistent_api_support=0 peerdirect_support=1";

    /// Only the module has parameters, and only the callback module may be loaded already.
    #[test]
    fn what_is_loaded() {
        let files = ["/cache/nv_peer_mem_callback.ko", "/cache/nv_peer_mem.ko"].map(PathBuf::from);
        let parameters = ["persistent_api_support=0", "peerdirect_support=1"].map(str::to_owned);
        for (loaded, calls) in [
            (&[] as &[&str], vec![CALLBACK, MODULE]),
            (&["nv_peer_mem_callback"], vec![MODULE]),
            // Mellanox's own nv_peer_mem has this name, too. The kernel's refusal says so.
            (&["nv_peer_mem_callback", "nv_peer_mem"], vec![MODULE]),
        ] {
            let modules = Directory::new();
            for name in loaded {
                fs::create_dir(modules.join(name)).unwrap();
            }
            let found = commands(&files, &parameters, &modules);
            assert_eq!(found.iter().map(|words| words.join(" ")).collect::<Vec<_>>(), calls);
        }
    }

    #[test]
    fn refused() {
        assert!(call(&["ls", "/no/such/file"]).unwrap_err().0.contains("No such file"));
        assert_eq!(call(&["false"]).unwrap_err().0, "false has ended with 1");
        assert!(call(&["/no/such/program"]).unwrap_err().0.starts_with("/no/such/program cannot be started: "));
        call(&["true"]).unwrap();
    }
}
