// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Root runs nvpm in a directory that all users may write to. nvpm must not run or load a file that another user has
//! put there. Only root can give a file to another user, so the tests run as root.
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::node::{Ended, Node, program};

const NOBODY: u32 = 65534;
/// The beginning of an ELF file for this machine, up to the number of the processor.
const BEGINNING: usize = 20;
/// The names of nvpm as a single file of a release, and in the packages and a checkout.
const WAYS: [&str; 2] = ["nvpm-of-a-release", "nvpm-bin"];
const DMA_BUF_ONLY: [&str; 2] = [
    "/proc/kallsyms = 0 T ib_umem_dmabuf_get\\t[ib_uverbs]\\n0 t mlx5_ib_reg_user_mr_dmabuf\\t[mlx5_ib]",
    "- /sys/module/nv_peer_mem /sys/module/nvidia_peermem",
];

/// A machine without peer memory, on which nvpm lies in a directory that all users may write to, like /tmp.
struct World {
    node: Node,
    directory: PathBuf,
}

impl World {
    fn new() -> Self {
        assert!(geteuid().is_root(), "run this test as root, who can give files to other users");
        let node = Node::new();
        node.change(&DMA_BUF_ONLY);
        let directory = node.scratch().join("world");
        fs::create_dir(&directory).unwrap();
        set(&directory, 0o1777);
        for way in WAYS {
            // A process that another test starts meanwhile must not inherit the file while it is open for writing.
            assert!(Command::new("cp").arg(program()).arg(directory.join(way)).status().unwrap().success());
        }
        Self { node, directory: directory.canonicalize().unwrap() }
    }

    fn released(&self) -> PathBuf {
        let processor = rustix::system::uname().machine().to_string_lossy().into_owned();
        self.directory.join(format!("libnvpm_preload-{}-{processor}.so", env!("CARGO_PKG_VERSION")))
    }

    fn called(&self, way: &str, words: &[&str]) -> Ended {
        let mut command = Command::new(self.directory.join(way));
        command.args(words).env_clear().envs(self.node.environment()).current_dir("/").stdin(Stdio::null());
        command.output().unwrap().into()
    }

    fn preloaded(&self, way: &str) -> Ended {
        self.called(way, &["run", "printenv", "LD_PRELOAD"])
    }
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn with_parent(path: &Path) -> &Path {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

fn of_nobody(path: &Path, text: &str) {
    fs::write(with_parent(path), text).unwrap();
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

/// Puts a library of root into the directory.
fn library(path: &Path) {
    fs::write(with_parent(path), &fs::read(program()).unwrap()[..BEGINNING]).unwrap();
    set(path, 0o644);
}

#[test]
fn a_shell_file_beside_nvpm_is_not_executed() {
    for name in ["conf.sh", "init.d/conf.sh"] {
        let world = World::new();
        let noted = world.directory.join("noted");
        of_nobody(&world.directory.join(name), &format!("id >{}; conf_lines() {{ :; }}", noted.display()));
        for way in WAYS {
            let said = world.called(way, &["status", "--all"]);
            assert!(said.out.contains("on boot") && !said.err.contains("panicked"), "{}{}", said.out, said.err);
            assert!(!noted.exists(), "{name}");
        }
    }
}

#[test]
fn a_library_that_others_can_write_is_passed_over() {
    let puts: [fn(&Path); 5] = [
        |path| of_nobody(path, ""),
        |path| {
            symlink("/etc/hostname", path).unwrap();
            lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        },
        |path| {
            fs::write(path, "").unwrap();
            set(path, 0o646);
        },
        |path| {
            fs::write(path, "").unwrap();
            chown(path, Some(0), Some(5)).unwrap();
            set(path, 0o664);
        },
        |path| fs::create_dir(path).unwrap(),
    ];
    for (number, put) in puts.into_iter().enumerate() {
        let world = World::new();
        put(&world.released());
        for way in WAYS {
            let said = world.preloaded(way);
            assert!(said.code == Some(1) && said.out.is_empty(), "{number}, {way}: {:?} {}", said.code, said.out);
            assert!(said.err.contains("there is no"), "{number}, {way}: {}", said.err);
            let passed = format!("{} is passed over: ", world.released().display());
            assert!(said.err.contains(&passed), "{number}, {way}: {}", said.err);
        }
    }
}

#[test]
fn a_single_file_takes_only_the_library_of_its_release() {
    let (world, way) = (World::new(), WAYS[0]);
    of_nobody(&world.directory.join("libnvpm_preload.so"), "");
    library(&world.directory.join("preload/libnvpm_preload.so"));
    let said = world.preloaded(way);
    assert!(said.code == Some(1) && said.err.contains("there is no"), "{:?} {}", said.code, said.err);
    assert!(!said.err.contains("passed over"), "{}", said.err);
    library(&world.released());
    assert_eq!(world.preloaded(way).out, format!("{}\n", world.released().display()));
}

#[test]
fn in_a_checkout_the_library_is_where_a_build_puts_it() {
    let (world, way) = (World::new(), WAYS[1]);
    for place in ["preload/target/release", "preload", ""] {
        let path = world.directory.join(place).join("libnvpm_preload.so");
        library(&path);
        set(&path, 0o755);
        let said = world.preloaded(way);
        assert_eq!(said.out, format!("{}\n", path.display()), "{}", said.err);
    }
}
