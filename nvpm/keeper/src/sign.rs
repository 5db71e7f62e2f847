// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Signs the modules that were built, for kernels that load only signed modules. Key and certificate are a Secret of
//! the kind kubernetes.io/tls. The program that signs is in the kernel's headers, as for any other module.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::build::Failed;
use crate::checksum::checksum;
use crate::disk;
use crate::program::code;
use crate::root_programs::Loader;

/// Where daemonset.yaml shows the Secret.
pub const SECRET: &str = "/etc/nv-peer-mem/signing";
/// The name of the Secret in daemonset.yaml.
const NAME: &str = "nv-peer-mem-signing";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    key: PathBuf,
    certificate: PathBuf,
}

impl Signer {
    /// Returns what signs modules; None if the directory has neither key nor certificate; why not, if one is missing.
    pub fn of(secret: &Path) -> Result<Option<Self>, String> {
        let (key, certificate) = (secret.join("tls.key"), secret.join("tls.crt"));
        match (key.exists(), certificate.exists()) {
            (false, false) => Ok(None),
            (true, true) => Ok(Some(Self { key, certificate })),
            (has_key, _) => {
                let missing = if has_key { "tls.crt" } else { "tls.key" };
                Err(format!(
                    "the Secret {NAME} lacks {missing}, and modules are signed with a key and its certificate: kubectl \
                     create secret tls {NAME} --key FILE --cert FILE"
                ))
            }
        }
    }

    /// Returns a checksum of the certificate. A module that was signed with another one is built again.
    pub fn identity(&self) -> io::Result<String> {
        Ok(checksum(&disk::of(&self.certificate, fs::read(&self.certificate))?))
    }

    /// Signs modules by the program of the kernel's headers, with the hash that the kernel's configuration names. If the
    /// image lacks the program's libraries, those of the root directory with the headers serve.
    pub fn sign(&self, root: &Path, headers: &Path, modules: &[PathBuf]) -> Result<(), Failed> {
        let program = headers.join("scripts/sign-file");
        let config = fs::read_to_string(headers.join(".config")).unwrap_or_default();
        let hash = config.lines().find_map(|line| line.strip_prefix("CONFIG_MODULE_SIG_HASH="));
        let hash = hash.unwrap_or_default().trim_matches('"');
        let hash = if hash.is_empty() { "sha256" } else { hash };
        for module in modules {
            let words = [hash.as_ref(), self.key.as_os_str(), self.certificate.as_os_str(), module.as_os_str()];
            let again = || Loader::of(root).and_then(|loader| ended(loader.command(&program).args(words)).ok());
            ended(Command::new(&program).args(words)).or_else(|said| again().ok_or(said)).map_err(|said| {
                Failed::Because(format!("the modules cannot be signed: {} {said}", program.display()))
            })?;
        }
        Ok(())
    }
}

/// Runs a command. If it fails, returns what it has said.
fn ended(command: &mut Command) -> Result<(), String> {
    let ended = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot be started: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(said
        .lines()
        .next()
        .map_or_else(|| format!("ended with {}", code(ended.status)), |said| format!("says: {said}")))
}

/// Returns what to do if the kernel has refused a module because of its signature; None if it has another reason.
pub fn remedy(refusal: &str, is_signed: bool) -> Option<String> {
    if !["Key was rejected by service", "Required key not available"].iter().any(|said| refusal.contains(said)) {
        return None;
    }
    Some(if is_signed {
        format!(
            "The module is signed with the certificate of the Secret {NAME}, which this node's kernel does not trust. On \
             the node: openssl x509 -in tls.crt -outform DER -out nv-peer-mem.der && mokutil --import nv-peer-mem.der; \
             then reboot, and confirm at the console."
        )
    } else {
        format!(
            "This node's kernel loads only signed modules: give the pod a key by the Secret {NAME}, and have the node trust \
             its certificate (docs/kubernetes.md, Signed modules)."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Directory;
    use crate::root_programs::tests::{compile, root_with};
    use std::os::unix::fs::PermissionsExt;

    struct Case {
        directory: Directory,
    }

    impl Case {
        /// Makes a Secret, and headers whose sign-file runs RECIPE.
        fn new(config: &str, recipe: &str) -> Self {
            let directory = Directory::new();
            fs::create_dir_all(directory.join("headers/scripts")).unwrap();
            fs::write(directory.join("headers/.config"), config).unwrap();
            let program = directory.join("headers/scripts/sign-file");
            fs::write(&program, format!("#!/bin/sh\n{recipe}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            for name in ["tls.key", "tls.crt", "a.ko", "b.ko"] {
                fs::write(directory.join(name), name).unwrap();
            }
            Self { directory }
        }

        fn sign(&self) -> Result<(), Failed> {
            let modules = ["a.ko", "b.ko"].map(|name| self.directory.join(name));
            let signer = Signer::of(&self.directory).unwrap().unwrap();
            signer.sign(&self.directory, &self.directory.join("headers"), &modules)
        }

        fn text(&self, name: &str) -> String {
            fs::read_to_string(self.directory.join(name)).unwrap()
        }
    }

    #[test]
    fn each_module_is_signed_with_the_kernels_hash() {
        let recipe = "echo \" $1 ${2##*/} ${3##*/}\" >>\"$4\"";
        for (config, hash) in [
            ("CONFIG_MODULE_SIG_HASH=\"sha512\"\n", "sha512"),
            ("CONFIG_MODULE_SIG=y\n", "sha256"),
            ("CONFIG_MODULE_SIG_HASH=\"\"\n", "sha256"),
        ] {
            let case = Case::new(config, recipe);
            case.sign().unwrap();
            for name in ["a.ko", "b.ko"] {
                assert_eq!(case.text(name), format!("{name} {hash} tls.key tls.crt\n"));
            }
        }
    }

    #[test]
    fn a_program_that_fails_or_is_missing_is_named() {
        let case = Case::new("", "case $4 in *b.ko) echo 'sign-file: tls.key: bad key' >&2; exit 1 ;; esac");
        let Err(Failed::Because(said)) = case.sign() else { panic!() };
        assert!(said.contains("scripts/sign-file says: sign-file: tls.key: bad key"), "{said}");
        fs::remove_file(case.directory.join("headers/scripts/sign-file")).unwrap();
        let Err(Failed::Because(said)) = case.sign() else { panic!() };
        assert!(said.contains("scripts/sign-file cannot be started"), "{said}");
    }

    /// The image lacks a library of the program, and the root with the headers has it.
    #[test]
    fn a_program_of_another_distribution() {
        let case = Case::new("", "");
        let (program, library) = (case.directory.join("headers/scripts/sign-file"), case.directory.join("libother.so"));
        compile("int sign(void) { return 0; }\n", &["-shared"], &library);
        let source = "int sign(void);\nint main(void) { return sign(); }\n";
        compile(source, &["-L", case.directory.to_str().unwrap(), "-lother"], &program);
        let signer = Signer::of(&case.directory).unwrap().unwrap();
        let sign = |root: &Path| signer.sign(root, &case.directory.join("headers"), &[case.directory.join("a.ko")]);
        let root = root_with("x", "");
        let Err(Failed::Because(said)) = sign(&root) else { panic!() };
        assert!(said.contains("sign-file says: ") && said.contains("libother.so"), "{said}");
        fs::copy(library, root.join("lib64/libother.so")).unwrap();
        sign(&root).unwrap();
    }

    #[test]
    fn a_secret_has_both_or_nothing() {
        let case = Case::new("", "");
        let signer = Signer::of(&case.directory).unwrap().unwrap();
        assert_eq!(signer.identity().unwrap(), checksum(b"tls.crt"));
        fs::remove_file(case.directory.join("tls.crt")).unwrap();
        assert!(Signer::of(&case.directory).unwrap_err().contains("lacks tls.crt"));
        fs::remove_file(case.directory.join("tls.key")).unwrap();
        assert_eq!(Signer::of(&case.directory), Ok(None));
        fs::write(case.directory.join("tls.crt"), "").unwrap();
        assert!(Signer::of(&case.directory).unwrap_err().contains("lacks tls.key"));
    }

    #[test]
    fn what_to_do_about_a_signature() {
        let rejected = "insmod: ERROR: could not insert module x.ko: Key was rejected by service";
        assert!(remedy(rejected, true).unwrap().contains("mokutil --import"));
        assert!(remedy(rejected, false).unwrap().contains("loads only signed modules"));
        assert!(remedy("insmod: ERROR: could not insert module x.ko: Required key not available", false).is_some());
        assert_eq!(remedy("insmod: ERROR: could not insert module x.ko: Invalid parameters", true), None);
    }
}
