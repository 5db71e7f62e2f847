// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The compiler for the module. The headers of a distribution may name a version of gcc that the image does not have,
//! such as gcc-12. The image's own gcc makes a module that the kernel loads, because the kernel does not compare
//! versions of gcc. If the image's gcc fails, the kernel's own compiler is tried, which the root directory with the
//! headers may have. A kernel that clang compiled needs clang, for which build/find/kernel.sh looks.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::printed;
use crate::root_programs;

/// The compilers of the kernel and of the image, as each names itself. A text is empty if it is unknown.
pub struct Compilers {
    kernel: String,
    image: String,
    is_gcc: bool,
}

impl Compilers {
    /// Reads the configuration of the kernel's headers, and asks the image's compiler.
    pub fn of(headers: &Path) -> Self {
        let config = fs::read_to_string(headers.join(".config")).unwrap_or_default();
        let said = Command::new("gcc").arg("--version").output().map(|ended| ended.stdout).unwrap_or_default();
        Self::from(&config, &String::from_utf8_lossy(&said))
    }

    fn from(config: &str, said: &str) -> Self {
        let text = config.lines().find_map(|line| line.strip_prefix("CONFIG_CC_VERSION_TEXT="));
        Self {
            kernel: text.unwrap_or_default().trim_matches('"').to_owned(),
            image: first(said).to_owned(),
            is_gcc: config.lines().any(|line| line == "CONFIG_CC_IS_GCC=y"),
        }
    }

    /// Returns make's word for the image's own gcc, if gcc compiled the kernel.
    pub fn setting(&self) -> Option<&'static str> {
        self.is_gcc.then_some("CC=gcc")
    }

    /// Returns whether both compilers are known, and have different versions.
    fn differ(&self) -> bool {
        let (kernel, image) = (version(&self.kernel), version(&self.image));
        !kernel.is_empty() && !image.is_empty() && kernel != image
    }

    /// Returns a program that starts the kernel's own compiler, if a root directory has this compiler and the image
    /// does not. The program is written into the directory WORK.
    pub fn of_kernel(&self, root: &Path, work: &Path) -> io::Result<Option<PathBuf>> {
        if !self.is_gcc || !self.differ() {
            return Ok(None);
        }
        let program = work.join("gcc");
        for name in [self.kernel.split_whitespace().next().unwrap_or_default(), "gcc"] {
            if root_programs::write_compiler(root, name, &program)?
                && version(first(&printed(&program, &["--version"]))) == version(&self.kernel)
            {
                return Ok(Some(program));
            }
        }
        Ok(None)
    }

    /// Returns a sentence that names both compilers if their versions differ, for the reason of a failed build.
    pub fn difference(&self) -> String {
        if !self.differ() {
            return String::new();
        }
        format!(" (the kernel was compiled by {}, and this image has {})", self.kernel, self.image)
    }
}

fn first(said: &str) -> &str {
    said.lines().next().unwrap_or_default()
}

/// Returns the version of a compiler, which is the last word of its name, or the last before a date and a vendor in
/// parentheses: "gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-28)".
fn version(name: &str) -> &str {
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|letter: char| letter.is_ascii_digit());
    let outside = name.split_once(") ").map_or(name, |(_, rest)| rest);
    outside.split_whitespace().find(is_version).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Directory;

    const DEBIAN_13: &str = "gcc (Debian 14.2.0-19) 14.2.0\nCopyright (C) 2024 Free Software Foundation, Inc.\n";

    /// Lines of the headers of Debian 12 and 13, Ubuntu 24.04 and RHEL 8, and of a kernel of clang.
    #[test]
    fn compilers_of_kernels() {
        for (text, kind, setting, differs) in [
            ("gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0", "GCC", Some("CC=gcc"), true),
            ("x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0", "GCC", Some("CC=gcc"), false),
            ("x86_64-linux-gnu-gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "GCC", Some("CC=gcc"), true),
            ("gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-28)", "GCC", Some("CC=gcc"), true),
            ("Debian clang version 19.1.7 (3)", "CLANG", None, true),
        ] {
            let config = format!("CONFIG_CC_VERSION_TEXT=\"{text}\"\nCONFIG_CC_IS_{kind}=y\n");
            let found = Compilers::from(&config, DEBIAN_13);
            assert_eq!(found.setting(), setting, "{text}");
            let expected =
                format!(" (the kernel was compiled by {text}, and this image has gcc (Debian 14.2.0-19) 14.2.0)");
            assert_eq!(found.difference(), if differs { expected } else { String::new() }, "{text}");
        }
    }

    /// This machine's root stands for a container's, whose compiler is the kernel's own.
    #[test]
    fn the_kernels_own_compiler() {
        let work = Directory::new();
        let here = printed("gcc", &["--version"]);
        let is = |name: &str, kind: &str, image: &str| {
            let config = format!("CONFIG_CC_VERSION_TEXT=\"{name}\"\nCONFIG_CC_IS_{kind}=y\n");
            Compilers::from(&config, image).of_kernel(Path::new("/"), &work).unwrap().is_some()
        };
        let other = "gcc (Debian 99.2.0-19) 99.2.0\n";
        assert!(is(first(&here), "GCC", other));
        assert!(is(&first(&here).replacen("gcc", "gcc-of-others", 1), "GCC", other), "the root has it as gcc");
        assert!(!is(first(&here), "GCC", &here), "the image has the same");
        assert!(!is("gcc-98 (Debian 98.1.0-1) 98.1.0", "GCC", other), "the root has another one");
        assert!(!is(first(&here), "CLANG", other));
    }

    #[test]
    fn what_is_unknown_differs_from_nothing() {
        assert_eq!(Compilers::from("", DEBIAN_13).setting(), None);
        assert_eq!(Compilers::from("", DEBIAN_13).difference(), "");
        let config = "CONFIG_CC_VERSION_TEXT=\"gcc-12 (Debian 12.2.0-14) 12.2.0\"\n";
        assert_eq!(Compilers::from(config, "").difference(), "");
    }
}
