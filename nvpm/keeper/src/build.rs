// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Builds the module for the running kernel, in a copy of the release's sources.
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::compiler::Compilers;
use crate::disk;
use crate::places::Places;
use crate::program::{Ended, run};

/// A build of the module needs these parts of a release.
const PARTS: [&str; 5] = ["Kbuild", "Makefile", "dkms.conf", "build", "src"];
/// Sixteen compilers at a time need nearly the memory that daemonset.yaml allows.
const JOBS: usize = 4;
/// A build takes half a minute. A build that takes this long hangs.
const LONGEST: Duration = Duration::from_secs(900);

/// Why a build has not made the module.
#[derive(Debug)]
pub enum Failed {
    /// The line that says why.
    Because(String),
    /// A file cannot be read or written.
    File(io::Error),
    /// A signal is to end this program.
    Stopped,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// The directory of a finished build, and the driver's header that was used.
#[derive(Debug, PartialEq, Eq)]
pub struct Built {
    pub directory: PathBuf,
    pub header: PathBuf,
}

/// Builds the module NAME in the empty directory WORK. The output goes to the file WORK/log. A signal also ends the
/// build. If the image's compiler fails, the kernel's own compiler is tried.
pub fn build(
    release: &Path,
    places: &Places,
    kernel: &str,
    name: &str,
    work: &Path,
    stops: impl Fn() -> bool,
) -> Result<Built, Failed> {
    lay_links(places, Path::new("/usr"))?;
    let compilers = Compilers::of(&places.headers);
    let attempt = |compiler: Option<&str>| {
        let settings = settings(places, kernel, name);
        attempt(release, work, settings.iter().map(String::as_str).chain(compiler), &stops)
    };
    let said = match attempt(compilers.setting())? {
        Ok(built) => return Ok(built),
        Err(said) => format!("{said}{}", compilers.difference()),
    };
    let Some(program) = compilers.of_kernel(&places.headers_root, work)? else { return Err(Failed::Because(said)) };
    let root = places.headers_root.display();
    let again = attempt(Some(&format!("CC={}", program.display())))?;
    again.map_err(|again| Failed::Because(format!("{said}; with the kernel's own compiler, from {root}: {again}")))
}

/// Runs make once in a new copy of the release. If make fails, returns the line that says why.
fn attempt<'a>(
    release: &Path,
    work: &Path,
    settings: impl Iterator<Item = &'a str>,
    stops: impl Fn() -> bool,
) -> Result<Result<Built, String>, Failed> {
    let (tree, log) = (work.join("tree"), work.join("log"));
    disk::remove(&tree);
    copy_parts(release, &tree)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (output, begin) = open(&log)?;
    let mut make = Command::new("make");
    make.args(words(&tree, processors)).args(settings);
    make.stderr(output.try_clone()?).stdout(output);
    let ended =
        run(&mut make, LONGEST, stops).map_err(|error| Failed::Because(format!("make cannot be started: {error}")))?;
    let text = disk::of(&log, fs::read(&log))?;
    let text = String::from_utf8_lossy(text.get(begin..).unwrap_or_default()).into_owned();
    match ended {
        Ended::With(0) => Ok(Ok(Built { header: header(&text, &tree), directory: tree })),
        Ended::With(code) => Ok(Err(reason(&text, code))),
        Ended::Late => Err(Failed::Because(format!("the build has not ended after {} s", LONGEST.as_secs()))),
        Ended::Stopped => Err(Failed::Stopped),
    }
}

/// Opens the file of a build's output at its end. Returns it, and its size.
fn open(log: &Path) -> io::Result<(File, usize)> {
    let file = disk::of(log, File::options().create(true).append(true).open(log))?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    Ok((file, size))
}

/// Copies the parts of a release with the times of their files, which make compares.
fn copy_parts(release: &Path, tree: &Path) -> io::Result<()> {
    disk::make_private(tree)?;
    let ended = Command::new("cp").arg("-RLp").args(PARTS.map(|part| release.join(part))).arg(tree).output()?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(io::Error::other(said.lines().next().unwrap_or("cp has failed").to_owned()))
}

/// Returns the words with which make runs in TREE. A node with many processors must not run as many compilers, because
/// of the pod's memory.
fn words(tree: &Path, processors: usize) -> [String; 3] {
    ["-C".to_owned(), tree.display().to_string(), format!("-j{}", processors.min(JOBS))]
}

/// Returns the settings of make.
fn settings(places: &Places, kernel: &str, name: &str) -> [String; 6] {
    [
        format!("KVER={kernel}"),
        format!("KDIR={}", places.headers.display()),
        format!("NVPM_NAME={name}"),
        "NVPM_RUST=prebuilt".to_owned(),
        places.driver.clone(),
        places.core.clone(),
    ]
}

/// Makes the headers reachable at the place where their package installs them, because Debian's headers name other
/// directories of /usr/src and /usr/lib by absolute paths. TOP is /usr but in tests.
fn lay_links(places: &Places, top: &Path) -> io::Result<()> {
    for (directory, beginning) in [("src", ""), ("lib", "linux-kbuild-")] {
        let from = places.headers_root.join("usr").join(directory);
        for there in from.read_dir().into_iter().flatten().flatten() {
            if !there.file_name().as_encoded_bytes().starts_with(beginning.as_bytes()) {
                continue;
            }
            let link = top.join(directory).join(there.file_name());
            if link.is_symlink() {
                disk::of(&link, fs::remove_file(&link))?;
            }
            if !link.exists() {
                disk::of(&link, symlink(there.path(), &link))?;
            }
        }
    }
    Ok(())
}

/// Returns the line of a build's output that says why the build has failed.
fn reason(log: &str, code: i32) -> String {
    let ours = log.lines().rev().find_map(|line| line.strip_prefix("nv_peer_mem: ").filter(|said| !said.is_empty()));
    let said = ours.or_else(|| log.lines().find(|line| has_error(line)));
    said.map_or_else(|| format!("make has ended with {code}"), str::to_owned)
}

fn has_error(line: &str) -> bool {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.any(|word| ["error", "ERROR", "Error"].contains(&word))
}

/// Returns the driver's header that a build has used, as configure has printed it.
fn header(log: &str, tree: &Path) -> PathBuf {
    let said = log.lines().find_map(|line| line.strip_prefix("NV_SRC ").map(str::trim_start));
    let said = said.filter(|path| path.starts_with('/') && !path.contains(char::is_whitespace));
    said.map_or_else(|| tree.join("src/include/nvidia"), PathBuf::from).join("nv-p2p.h")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Directory;

    fn places(root: &Path) -> Places {
        let (driver, core) = ("DRIVER_ROOT=/d".to_owned(), "CORE_ROOT=/c".to_owned());
        Places { headers_root: root.to_owned(), headers: PathBuf::from("/d/headers"), driver, core }
    }

    #[test]
    fn the_command() {
        let found = settings(&places(Path::new("/d")), "6.8.0", "nvidia_peermem").join(" ");
        let expected =
            "KVER=6.8.0 KDIR=/d/headers NVPM_NAME=nvidia_peermem NVPM_RUST=prebuilt DRIVER_ROOT=/d CORE_ROOT=/c";
        assert_eq!(found, expected);
        for (processors, jobs) in [(1, 1), (2, 2), (224, 4)] {
            assert_eq!(words(Path::new("/made/tree"), processors).join(" "), format!("-C /made/tree -j{jobs}"));
        }
    }

    /// The Makefile of this release prints the words that it was given.
    #[test]
    fn a_build() {
        let (release, work) = (Directory::new(), Directory::new());
        for part in ["build", "src"] {
            fs::create_dir(release.join(part)).unwrap();
        }
        for file in ["Kbuild", "dkms.conf", "src/x.c"] {
            fs::write(release.join(file), file).unwrap();
        }
        let make = |recipe: &str| {
            fs::write(release.join("Makefile"), format!("all:\n\t@{recipe}\n")).unwrap();
            let _ = fs::remove_dir_all(work.join("tree"));
            let places = places(Path::new("/no/such/root"));
            build(&release, &places, "6.8.0", "nv_peer_mem", &work, || recipe.starts_with("sleep"))
        };
        let built =
            make("echo NV_SRC '      /d/usr/src/nvidia-570.1/nvidia'; echo name $(NVPM_NAME); ls src >&2").unwrap();
        assert_eq!(built.directory, work.join("tree"));
        assert_eq!(built.header, Path::new("/d/usr/src/nvidia-570.1/nvidia/nv-p2p.h"));
        let log = fs::read_to_string(work.join("log")).unwrap();
        assert!(log.contains("\nname nv_peer_mem\nx.c\n"), "{log}");
        let failed = make("echo 'nv_peer_mem: pahole is missing'; exit 1");
        assert!(matches!(failed, Err(Failed::Because(said)) if said == "pahole is missing"));
        assert!(matches!(make("sleep 300"), Err(Failed::Stopped)));
        fs::remove_file(release.join("Kbuild")).unwrap();
        assert!(matches!(make("true"), Err(Failed::File(error)) if error.to_string().contains("Kbuild")));
    }

    /// The image's gcc fails, and the root with the headers has the kernel's own gcc.
    #[test]
    fn a_build_by_the_kernels_own_compiler() {
        let (release, work) = (Directory::new(), Directory::new());
        let root = crate::root_programs::tests::root_with("gcc-9", "gcc-9 (Test) 9.1.0");
        for part in ["build", "src"] {
            fs::create_dir(release.join(part)).unwrap();
        }
        for file in ["Kbuild", "dkms.conf"] {
            fs::write(release.join(file), file).unwrap();
        }
        let make = |text: &str, recipe: &str| {
            let config = format!("CONFIG_CC_VERSION_TEXT=\"{text}\"\nCONFIG_CC_IS_GCC=y\n");
            fs::write(root.join(".config"), config).unwrap();
            fs::write(release.join("Makefile"), format!("all:\n\t@{recipe}\n")).unwrap();
            let places = Places { headers: root.to_path_buf(), ..places(&root) };
            build(&release, &places, "6.8.0", "nv_peer_mem", &work, || false)
        };
        let recipe =
            "test ! -e left && touch left && test $(CC) != gcc || { echo 'x.c:1: error: first'; exit 1; }; $(CC)";
        let built = make("gcc-9 (Test) 9.1.0", recipe).unwrap();
        assert_eq!(built.directory, work.join("tree"));
        let log = fs::read_to_string(work.join("log")).unwrap();
        let (first, second) = log.split_once("x.c:1: error: first\n").unwrap();
        assert!(!first.contains("(Test)") && second.contains("\ngcc-9 (Test) 9.1.0\n"), "{log}");
        let failed = make("gcc-9 (Test) 9.1.0", "echo \"x.c:1: error: $$(basename $$(dirname $(CC)))\"; exit 1");
        let Err(Failed::Because(said)) = failed else { panic!() };
        let directory = work.file_name().unwrap().to_str().unwrap();
        assert!(said.starts_with("x.c:1: error: . (the kernel was compiled by gcc-9 (Test) 9.1.0, and"), "{said}");
        let again = format!("; with the kernel's own compiler, from {}: x.c:1: error: {directory}", root.display());
        assert!(said.ends_with(&again), "{said}");
        let failed = make("gcc-10 (Test) 10.1.0", "echo x.c:1: error: $(CC); exit 1");
        assert!(matches!(failed, Err(Failed::Because(said)) if said.ends_with(')')));
    }

    /// Links of an earlier build are replaced. The image's own directories stay.
    #[test]
    fn the_links() {
        let directory = Directory::new();
        let (root, top) = (directory.join("root"), directory.join("usr"));
        for name in ["src/linux-headers-1-common", "src/own", "lib/linux-kbuild-1", "lib/other"] {
            fs::create_dir_all(root.join("usr").join(name)).unwrap();
        }
        for name in ["src/own", "lib"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        symlink("/gone", top.join("src/linux-headers-1-common")).unwrap();
        for _ in 0..2 {
            lay_links(&places(&root), &top).unwrap();
        }
        for name in ["src/linux-headers-1-common", "lib/linux-kbuild-1"] {
            assert_eq!(fs::read_link(top.join(name)).unwrap(), root.join("usr").join(name));
        }
        assert!(!top.join("src/own").is_symlink() && !top.join("lib/other").exists());
    }

    #[test]
    fn the_reason_of_a_failed_build() {
        for (log, said) in [
            ("a\nnv_peer_mem: pahole is missing\nmake: *** [Makefile:40: modules] Error 1\n", "pahole is missing"),
            ("nv_peer_mem: first\nnv_peer_mem: second\nx.c:1: error: third\n", "second"),
            ("x.c:1: error: first\nx.c:2: error: second\nmake: *** Error 1\n", "x.c:1: error: first"),
            ("errors_are_here\nterror\nx\n", "make has ended with 2"),
        ] {
            assert_eq!(reason(log, 2), said);
        }
    }

    #[test]
    fn the_header_of_the_driver() {
        let tree = Path::new("/tree");
        assert_eq!(header("NV_SRC   none\n", tree), Path::new("/tree/src/include/nvidia/nv-p2p.h"));
        assert_eq!(header("x\nNV_SRC   /d e\n", tree), header("", tree));
    }
}
