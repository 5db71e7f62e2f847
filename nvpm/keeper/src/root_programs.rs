// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Programs below another root directory, such as that of the driver's container. Programs of another distribution
//! need its libraries. So the loader of that root starts them with the libraries of that root, and gcc starts its parts
//! in the same way (`-wrapper`). This needs neither a capability nor a mount that the pod does not have.
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::disk;

/// What starts the programs of a root.
pub struct Loader {
    file: PathBuf,
    libraries: String,
}

impl Loader {
    pub fn of(root: &Path) -> Option<Self> {
        let directories = libraries().map(|directory| root.join(directory));
        let directories: Vec<_> = directories.into_iter().filter(|directory| is_below(root, directory)).collect();
        let machine = machine();
        let name = format!("ld-linux-{}.so.{}", machine.replace('_', "-"), if machine == "aarch64" { 1 } else { 2 });
        let file = directories.iter().map(|directory| directory.join(&name)).find(|file| is_below(root, file))?;
        let libraries: Vec<_> = directories.iter().map(|directory| directory.to_string_lossy()).collect();
        Some(Self { file, libraries: libraries.join(":") })
    }

    /// Returns a command that starts a program with the libraries of the root.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.file);
        command.args(["--library-path", &self.libraries]).arg(program);
        command
    }

    /// Returns a script that starts a compiler. The parts of gcc, such as the assembler, are in its directory.
    fn script(&self, compiler: &Path) -> String {
        let (file, libraries) = (self.file.display(), &self.libraries);
        let beside = compiler.parent().unwrap_or(compiler).display();
        format!(
            "#!/bin/sh\nexec {file} --library-path {libraries} {} -wrapper {file},--library-path,{libraries} -B{beside}/ \
             \"$@\"\n",
            compiler.display()
        )
    }
}

/// Writes the program TO, which starts the compiler NAME of a root. Returns whether the root has this compiler.
pub fn write_compiler(root: &Path, name: &str, to: &Path) -> io::Result<bool> {
    let is_name = |letter: u8| letter.is_ascii_alphanumeric() || b"-._+".contains(&letter);
    let compiler = root.join("usr/bin").join(name);
    let (true, Some(loader)) = (name.bytes().all(is_name) && is_below(root, &compiler), Loader::of(root)) else {
        return Ok(false);
    };
    disk::of(to, fs::write(to, loader.script(&compiler)))?;
    disk::of(to, fs::set_permissions(to, fs::Permissions::from_mode(0o700)))?;
    Ok(true)
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

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::files::Directory;
    use std::os::unix::fs::symlink;

    /// Compiles a program, or a library.
    pub fn compile(source: &str, words: &[&str], to: &Path) {
        let file = to.with_extension("c");
        fs::write(&file, source).unwrap();
        assert!(Command::new("gcc").arg("-o").args([to, &file]).args(words).status().unwrap().success());
    }

    /// Makes a root directory with this machine's loader and C library, and with a compiler NAME that only prints SAID.
    pub fn root_with(name: &str, said: &str) -> Directory {
        let root = Directory::new();
        for directory in ["usr/bin", "lib64"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let loader = Loader::of(Path::new("/")).unwrap().file;
        for file in [loader.clone(), loader.with_file_name("libc.so.6")] {
            fs::copy(&file, root.join("lib64").join(file.file_name().unwrap())).unwrap();
        }
        compile(
            &format!("#include <stdio.h>\nint main(void) {{ return puts(\"{said}\") < 0; }}\n"),
            &[],
            &root.join("usr/bin").join(name),
        );
        root
    }

    /// This machine's own root has a compiler, with which the test was linked.
    #[test]
    fn a_compiler_compiles() {
        let directory = Directory::new();
        let (program, source, object) = (directory.join("gcc"), directory.join("x.c"), directory.join("x.o"));
        assert!(write_compiler(Path::new("/"), "gcc", &program).unwrap());
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
        assert!(!write_compiler(&root, "gcc", &to).unwrap());
        fs::write(root.join("usr/bin/gcc-12"), "").unwrap();
        symlink("gcc-12", root.join("usr/bin/gcc")).unwrap();
        assert!(!write_compiler(&root, "gcc", &to).unwrap(), "there is no loader");
        symlink(std::env::current_exe().unwrap(), root.join("lib64").join(loader)).unwrap();
        assert!(!write_compiler(&root, "gcc", &to).unwrap(), "the link leads out of the root");
        fs::write(root.join("usr/lib64").join(loader), "").unwrap();
        assert!(write_compiler(&root, "gcc", &to).unwrap());
        let (at, script) = (root.display(), fs::read_to_string(&to).unwrap());
        assert!(script.contains(&format!("exec {at}/usr/lib64/{loader} --library-path {at}/lib64:{at}/usr/lib64")));
        assert!(script.contains(&format!("/usr/bin/gcc -wrapper {at}/usr/lib64/{loader},--library-path,{at}/lib64:")));
        for name in ["../bin/gcc", "gcc;x", "gcc-13"] {
            assert!(!write_compiler(&root, name, &to).unwrap(), "{name}");
        }
    }
}
