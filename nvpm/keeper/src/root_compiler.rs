// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! A compiler below another root directory, such as that of the driver's container. Programs of another distribution
//! need their own C library. So the loader of that root starts gcc with the libraries of that root, and gcc starts its
//! parts in the same way (`-wrapper`). This needs neither a capability nor a mount that the pod does not have.
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::disk;

/// The files below a root with which its compiler is started.
struct Compiler {
    program: PathBuf,
    loader: PathBuf,
    libraries: Vec<PathBuf>,
}

/// Writes the program TO, which starts the compiler NAME of a root. Returns whether the root has this compiler.
pub fn write(root: &Path, name: &str, to: &Path) -> io::Result<bool> {
    let Some(compiler) = find(root, name) else { return Ok(false) };
    disk::of(to, fs::write(to, compiler.script(&root.join("usr/bin"))))?;
    disk::of(to, fs::set_permissions(to, fs::Permissions::from_mode(0o700)))?;
    Ok(true)
}

fn find(root: &Path, name: &str) -> Option<Compiler> {
    let is_name = |letter: u8| letter.is_ascii_alphanumeric() || b"-._+".contains(&letter);
    let program = root.join("usr/bin").join(name);
    if !name.bytes().all(is_name) || !is_below(root, &program) {
        return None;
    }
    let libraries: Vec<PathBuf> = libraries()
        .iter()
        .map(|directory| root.join(directory))
        .filter(|directory| is_below(root, directory))
        .collect();
    let machine = machine();
    let loader = format!("ld-linux-{}.so.{}", machine.replace('_', "-"), if machine == "aarch64" { 1 } else { 2 });
    let loader = libraries.iter().map(|directory| directory.join(&loader)).find(|file| is_below(root, file))?;
    Some(Compiler { program, loader, libraries })
}

/// Returns the directories that can have the loader and the libraries. The distributions of Debian's family have both
/// in a directory with the processor's name, and an absolute link to the loader in lib64.
fn libraries() -> [String; 6] {
    let family = format!("lib/{}-linux-gnu", machine());
    [family.clone(), format!("usr/{family}"), "lib64".into(), "usr/lib64".into(), "lib".into(), "usr/lib".into()]
}

fn machine() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// Returns whether a file exists, and is below a root. An absolute link leads out of the root, into the image.
fn is_below(root: &Path, file: &Path) -> bool {
    matches!((root.canonicalize(), file.canonicalize()), (Ok(root), Ok(file)) if file.starts_with(&root))
}

impl Compiler {
    /// Returns a script that starts the compiler. The parts of gcc, such as the assembler, are in PROGRAMS.
    fn script(&self, programs: &Path) -> String {
        let libraries: Vec<_> = self.libraries.iter().map(|directory| directory.to_string_lossy()).collect();
        let (libraries, loader) = (libraries.join(":"), self.loader.display());
        format!(
            "#!/bin/sh\nexec {loader} --library-path {libraries} {} -wrapper {loader},--library-path,{libraries} \
             -B{}/ \"$@\"\n",
            self.program.display(),
            programs.display()
        )
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::files::Directory;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    /// Makes a root directory with this machine's loader and C library, and with a compiler NAME that only prints SAID.
    pub fn root_with(name: &str, said: &str) -> Directory {
        let root = Directory::new();
        for directory in ["usr/bin", "lib64"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let loader = find(Path::new("/"), "gcc").unwrap().loader;
        for file in [loader.clone(), loader.with_file_name("libc.so.6")] {
            fs::copy(&file, root.join("lib64").join(file.file_name().unwrap())).unwrap();
        }
        let source = root.join("x.c");
        fs::write(&source, format!("#include <stdio.h>\nint main(void) {{ return puts(\"{said}\") < 0; }}\n")).unwrap();
        let compiled = Command::new("gcc").arg("-o").args([root.join("usr/bin").join(name), source]).status();
        assert!(compiled.unwrap().success());
        root
    }

    /// This machine's own root has a compiler, with which the test was linked.
    #[test]
    fn a_compiler_compiles() {
        let directory = Directory::new();
        let (program, source, object) = (directory.join("gcc"), directory.join("x.c"), directory.join("x.o"));
        assert!(write(Path::new("/"), "gcc", &program).unwrap());
        fs::write(&source, "int nvpm_compiled(void) { return 1; }\n").unwrap();
        let said = Command::new(&program).args(["-v", "-c", "-o"]).args([&object, &source]).output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(fs::read(&object).unwrap().windows(13).any(|bytes| bytes == b"nvpm_compiled"), "{said}");
        // The loader has started both parts of gcc.
        for part in ["cc1 -quiet", "as -v"] {
            let line = said.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{said}"));
            assert!(line.contains("--library-path"), "{line}");
        }
    }

    #[test]
    fn a_root_without_one() {
        let (root, to) = (Directory::new(), Directory::new());
        let (to, machine) = (to.join("gcc"), machine());
        let loader = if machine == "aarch64" { "ld-linux-aarch64.so.1" } else { "ld-linux-x86-64.so.2" };
        for directory in ["usr/bin", "lib64", "usr/lib64"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        assert!(!write(&root, "gcc", &to).unwrap());
        fs::write(root.join("usr/bin/gcc-12"), "").unwrap();
        symlink("gcc-12", root.join("usr/bin/gcc")).unwrap();
        assert!(!write(&root, "gcc", &to).unwrap(), "there is no loader");
        symlink(std::env::current_exe().unwrap(), root.join("lib64").join(loader)).unwrap();
        assert!(!write(&root, "gcc", &to).unwrap(), "the link leads out of the root");
        fs::write(root.join("usr/lib64").join(loader), "").unwrap();
        assert!(write(&root, "gcc", &to).unwrap());
        let (at, script) = (root.display(), fs::read_to_string(&to).unwrap());
        assert!(script.contains(&format!("exec {at}/usr/lib64/{loader} --library-path {at}/lib64:{at}/usr/lib64")));
        assert!(script.contains(&format!("/usr/bin/gcc -wrapper {at}/usr/lib64/{loader},--library-path,{at}/lib64:")));
        for name in ["../bin/gcc", "gcc;x", "gcc-13"] {
            assert!(!write(&root, name, &to).unwrap(), "{name}");
        }
    }
}
