// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The keeper's attempts, with doubles of the build and of the kernel.
use super::*;
use crate::build::Built;
use crate::files::{Directory, Files};
use crate::node::{DRIVER_READY, OFED, OFED_READY};
use crate::places::Places;
use crate::report::read;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

const NAME: &str = "nvidia_peermem";
const BEGIN: Duration = Duration::from_secs(1000);
const SECOND: Duration = Duration::from_secs(1);
const LOAD: &str = "load persistent_api_support=0";
const UNLOAD: &str = "unload nvidia_peermem";

/// The clock, what the doubles are to do, and what the keeper has asked them for.
#[derive(Default)]
struct State {
    now: Duration,
    calls: Vec<String>,
    missing: Option<&'static str>,
    failed: Option<&'static str>,
    refused: Option<&'static str>,
    /// The build makes no module.
    incomplete: bool,
    /// The hook for the OFED container cannot be written.
    full: bool,
    /// A file of the node that disappears during the next load.
    leaves: Option<&'static str>,
    /// The directory of the key and the certificate.
    secret: Option<PathBuf>,
    /// The version of a driver that is loaded during the next build.
    replaced: Option<&'static str>,
}

#[derive(Clone)]
struct Doubles {
    node: Rc<Files>,
    state: Rc<RefCell<State>>,
}

impl Actions for Doubles {
    fn now(&self) -> Duration {
        self.state.borrow().now
    }

    fn work(&self) -> PathBuf {
        self.node.path("/build")
    }

    fn find(&mut self, _: &Node, _: &Cache) -> Result<Places, Missing> {
        match self.state.borrow().missing {
            Some(missing) => Err(Missing(missing.to_owned())),
            None => Ok(Places {
                headers_root: "/".into(),
                headers: self.state.borrow().secret.as_ref().map_or("/headers".into(), |_| self.node.path("/headers")),
                driver: "DRIVER_ROOT=/d".to_owned(),
                core: "CORE_ROOT=/c".to_owned(),
            }),
        }
    }

    fn build(&mut self, _: &Node, _: &Places, _: &str, name: &str, work: &Path) -> Result<Built, Failed> {
        let mut state = self.state.borrow_mut();
        state.calls.push("build".to_owned());
        fs::write(work.join("log"), "the output").unwrap();
        if let Some(failed) = state.failed {
            return Err(Failed::Because(failed.to_owned()));
        }
        let module = if state.incomplete { "x.ko".to_owned() } else { format!("{name}.ko") };
        for file in [module.as_str(), "nv_peer_mem_callback.ko", "nvidia.symvers", "nv-p2p.h"] {
            fs::write(work.join(file), file).unwrap();
        }
        if let Some(version) = state.replaced {
            self.node.load_build("nvidia", version, 0, "live");
        }
        Ok(Built { directory: work.to_owned(), header: work.join("nv-p2p.h") })
    }

    fn signer(&mut self) -> Result<Option<Signer>, String> {
        self.state.borrow().secret.as_ref().map_or(Ok(None), |secret| Signer::of(secret))
    }

    fn load(&mut self, _: &Node, files: &[PathBuf], parameters: &[String]) -> Result<(), Refused> {
        let mut state = self.state.borrow_mut();
        state.calls.push(format!("load {}", parameters.join(" ")));
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["nv_peer_mem_callback.ko", "nvidia_peermem.ko"]);
        if let Some(refused) = state.refused {
            return Err(Refused(refused.to_owned()));
        }
        self.node.load_own(NAME, "2.0.0", 0);
        if let Some(leaves) = state.leaves.take() {
            self.node.remove(leaves);
        }
        Ok(())
    }

    fn unload(&mut self, _: &Node, name: &str) -> Result<(), Refused> {
        let own = self.node.own().unwrap();
        assert_eq!(own.name, name);
        if own.references > 0 {
            return Err(Refused("rmmod: ERROR: Module nvidia_peermem is in use".to_owned()));
        }
        self.state.borrow_mut().calls.push(format!("unload {name}"));
        self.node.remove(&format!("/sys/module/{name}"));
        self.node.remove(&format!("/sys/module/ib_core/holders/{name}"));
        Ok(())
    }

    fn write_hook(&mut self, _: &Node) -> io::Result<bool> {
        if self.state.borrow().full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(true) }
    }

    fn advice(&mut self, _: &str, _: &str) -> String {
        "Advice.".to_owned()
    }
}

struct World {
    doubles: Doubles,
    keeper: Keeper<Doubles>,
    said: Rc<RefCell<Vec<String>>>,
    run: PathBuf,
    _directory: Directory,
}

impl World {
    fn new() -> Self {
        Self::named(NAME)
    }

    fn named(name: &str) -> Self {
        let (directory, node) = (Directory::new(), Rc::new(Files::ready()));
        let state = Rc::new(RefCell::new(State { now: BEGIN, ..State::default() }));
        let doubles = Doubles { node, state };
        let run = directory.join("run");
        let said = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&said);
        let told = Report::new(&run, move |text: &str| log.borrow_mut().push(text.to_owned())).unwrap();
        let cache = Cache::new(&directory.join("cache")).unwrap();
        let parameters = vec!["persistent_api_support=0".to_owned()];
        let settings = Settings { name: name.to_owned(), parameters, port: 0, version: "2.0.0".to_owned() };
        let keeper = Keeper::new(Node::new(&doubles.node.root), settings, cache, told, doubles.clone());
        Self { doubles, keeper, said, run, _directory: directory }
    }

    /// Looks once, and returns the state and the reason.
    fn look(&mut self) -> String {
        self.keeper.look();
        self.state()
    }

    fn state(&self) -> String {
        let status = read(&self.run).unwrap();
        format!("{}: {}", status.state.name(), status.reason)
    }

    fn look_until_ready(&mut self) {
        for _ in 0..3 {
            self.look();
        }
        assert!(self.state().starts_with("ready"), "{}", self.state());
    }

    /// Returns what the keeper has asked for since the last call.
    fn did(&self) -> Vec<String> {
        std::mem::take(&mut self.set().calls)
    }

    fn set(&self) -> std::cell::RefMut<'_, State> {
        self.doubles.state.borrow_mut()
    }

    fn wait(&self, time: Duration) {
        self.set().now += time;
    }

    fn wait_first(&self) {
        self.wait(FIRST);
    }

    /// Somebody else unloads the module.
    fn take_module(&self) {
        self.doubles.clone().unload(&self.node, NAME).unwrap();
        self.did();
    }

    fn ask_to_unload(&self) {
        crate::report::ask(&self.run).unwrap();
    }

    fn kept_driver(&self) -> Option<PathBuf> {
        self.keeper.cache.driver(&self.node.identity("nvidia"))
    }
}

impl Deref for World {
    type Target = Doubles;

    fn deref(&self) -> &Doubles {
        &self.doubles
    }
}

#[test]
fn builds_once() {
    let mut world = World::new();
    assert_eq!(
        world.look(),
        "building: nvidia_peermem 2.0.0 for kernel 6.8.0-60-generic, with DRIVER_ROOT=/d, CORE_ROOT=/c and the headers in \
         /headers"
    );
    assert_eq!(world.look(), "loading: nvidia_peermem 2.0.0, from the cache");
    assert_eq!(world.look(), "ready: nvidia_peermem 2.0.0 is registered with the RDMA core");
    assert_eq!(world.did(), ["build", LOAD]);
    world.look();
    assert_eq!(world.said.borrow().iter().filter(|line| line.starts_with("ready:")).count(), 1);
    world.take_module();
    world.wait(TAKEN);
    world.look();
    assert_eq!(world.did(), [LOAD]);
}

#[test]
fn another_core() {
    let mut world = World::new();
    world.look_until_ready();
    world.take_module();
    world.node.load_core("2", "ib_core");
    world.look_until_ready();
    assert_eq!(world.did(), ["build", LOAD]);
    assert!(world.kept_driver().is_some());
}

/// The container's script has found no module to unload. The script fails later, because the keeper has loaded this
/// module.
#[test]
fn a_container_ends_during_the_load() {
    for leaves in [OFED_READY, "/sys/module/nvidia_uvm"] {
        let mut world = World::new();
        world.node.contain_driver();
        world.node.contain_ofed();
        world.look();
        world.set().leaves = Some(leaves);
        assert_eq!(world.look(), "unloaded: nvidia_peermem 2.0.0");
        assert!(world.look().starts_with("waiting: "));
        assert_eq!(world.did(), ["build", LOAD, UNLOAD]);
    }
}

/// The module may be built for the old driver or for the new driver, and so may the kept symbols.
#[test]
fn a_neighbour_is_replaced_during_the_build() {
    let mut world = World::new();
    let old = world.node.identity("nvidia");
    world.set().replaced = Some("2");
    world.look();
    assert!(world.node.identity("nvidia") != old && world.keeper.cache.driver(&old).is_none());
    assert!(world.kept_driver().is_none());
    world.set().replaced = None;
    world.look();
    assert_eq!(world.did(), ["build", "build"]);
    assert!(world.kept_driver().is_some());
    world.node.load("nvidia");
    world.look();
    assert_eq!(world.did(), ["build"]);
}

/// The script entrypoint.sh unloads the module, installs a compiler, and removes only then the file that a killed
/// container has left. Minutes later, openibd fails if the module is back.
#[test]
fn the_older_ofed_container_after_a_kill() {
    let mut world = World::new();
    world.node.put(OFED_READY, "");
    world.look_until_ready();
    world.take_module();
    while world.doubles.now() + SECOND < BEGIN + TAKEN {
        world.wait(SECOND);
        assert_eq!(world.look(), format!("waiting: {WAS_TAKEN}"));
    }
    world.node.remove(OFED_READY);
    world.wait(TAKEN);
    world.node.put(&format!("{OFED}/usr/src/x"), "");
    assert!(world.look().starts_with("waiting: the OFED container is not ready"));
    world.did();
    world.node.put(OFED_READY, "");
    world.look();
    assert_eq!(world.did(), [LOAD]);
}

/// The wait ends when a neighbour was replaced, or a container is ready again, or after minutes. The same driver can be
/// back between two looks.
#[test]
fn after_somebody_else_has_unloaded() {
    for changed in ["nvidia", DRIVER_READY, OFED_READY, "nothing"] {
        let mut world = World::new();
        world.node.put(OFED_READY, "");
        world.node.put(DRIVER_READY, "");
        world.look_until_ready();
        world.take_module();
        world.look();
        assert_eq!(world.did(), [] as [&str; 0]);
        match changed {
            "nvidia" => {
                world.node.remove("/sys/module/nvidia");
                world.look();
                world.node.load("nvidia");
            }
            "nothing" => world.wait(TAKEN),
            file => File::options()
                .write(true)
                .open(world.node.path(file))
                .and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH))
                .unwrap(),
        }
        world.look();
        assert_eq!(world.did(), [LOAD], "{changed}");
    }
}

/// The part can appear at any time, so the pauses do not grow.
#[test]
fn a_part_is_missing() {
    let mut world = World::new();
    world.set().missing = Some("no headers");
    for _ in 0..5 {
        assert_eq!(world.look(), "waiting: no headers");
        for _ in 0..FIRST.as_secs() {
            assert_eq!(world.look(), "waiting: no headers");
            world.wait(SECOND);
        }
    }
    world.set().missing = None;
    assert!(world.look().starts_with("building"));
}

/// The pauses grow, and end when the node changes.
#[test]
fn the_build_fails() {
    let mut world = World::new();
    world.set().failed = Some("gcc is missing");
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let before = world.doubles.now();
        while world.did().is_empty() {
            world.look();
            world.wait(SECOND);
        }
        pauses.push(world.doubles.now().as_secs() - before.as_secs());
    }
    let log = world.keeper.log();
    let failed = format!("failed: the build: gcc is missing (all of its output: {})", log.display());
    assert_eq!(world.state(), failed);
    assert_eq!(fs::read_to_string(log).unwrap(), "the output");
    assert_eq!(pauses[1..], [15, 30, 60, 120, 240, 480, 600]);
    world.node.load_core("2", "ib_core");
    world.look();
    assert_eq!(world.did(), ["build"]);
    world.wait_first();
    world.look();
    assert_eq!(world.did(), ["build"]);
}

/// The driver is unloaded and loaded again between two attempts.
#[test]
fn told_again_until_the_next_attempt() {
    let mut world = World::new();
    world.set().failed = Some("gcc is missing");
    let failed = world.look();
    world.node.remove("/sys/module/nvidia");
    assert!(world.look().starts_with("waiting: NVIDIA's driver is not loaded"));
    world.node.load("nvidia");
    assert_eq!(world.look(), failed);
    // The state is not stale after a minute.
    world.wait(14 * SECOND);
    world.look();
    assert_eq!(read(&world.run).unwrap().at, BEGIN + 14 * SECOND);
    assert_eq!(world.did(), ["build"]);
}

/// The entry of the cache may be wrong, so the next attempt builds.
#[test]
fn the_kernel_refuses() {
    let mut world = World::new();
    world.look();
    world.set().refused = Some("insmod: ERROR: could not insert module: Invalid parameters");
    assert_eq!(world.look(), "failed: insmod: ERROR: could not insert module: Invalid parameters. Advice.");
    assert_eq!(world.did(), ["build", LOAD]);
    world.look();
    assert!(world.did().is_empty());
    world.wait_first();
    world.set().refused = None;
    world.look();
    world.look();
    assert_eq!(world.did(), ["build", LOAD]);
    assert!(world.look().starts_with("ready"));
}

/// The refusal may have another cause than the module, such as too little memory, and the driver's container has no
/// headers after some restarts.
#[test]
fn the_kernel_refuses_and_nothing_can_be_built() {
    let mut world = World::new();
    world.look();
    world.set().refused = Some("insmod: ERROR: could not insert module: busy");
    world.set().missing = Some("no headers");
    world.look();
    world.wait_first();
    assert_eq!(world.look(), "waiting: no headers");
    world.set().refused = None;
    world.wait_first();
    world.look();
    assert!(world.look().starts_with("ready"));
}

#[test]
fn asked_to_unload() {
    let mut world = World::new();
    world.look_until_ready();
    world.node.load_own(NAME, "2.0.0", 2);
    world.ask_to_unload();
    let held = world.look();
    assert!(held.starts_with("held: ") && held.contains("2 references to the module are held"), "{held}");
    world.node.load_own(NAME, "2.0.0", 0);
    assert_eq!(world.look(), "unloaded: nvidia_peermem 2.0.0");
    assert!(world.look().starts_with("unloaded: the module was unloaded on request"));
}

#[test]
fn a_file_cannot_be_read_or_written() {
    let mut world = World::new();
    world.set().incomplete = true;
    let failed = world.look();
    assert!(failed.starts_with("failed: a file cannot be read or written: /") && failed.contains("No such file"));
    world.set().incomplete = false;
    world.wait_first();
    world.look();
    world.look();
    assert!(world.look().starts_with("ready"));
    // The state cannot be written.
    fs::remove_dir_all(&world.run).unwrap();
    world.said.borrow_mut().clear();
    world.take_module();
    world.wait(TAKEN);
    world.keeper.look();
    assert_eq!(*world.said.borrow(), ["loading: nvidia_peermem 2.0.0, from the cache"]);
}

#[test]
fn the_hook_cannot_be_written() {
    let mut world = World::named("nv_peer_mem");
    world.node.load_own("nv_peer_mem", "2.0.0", 0);
    world.set().full = true;
    for _ in 0..2 {
        assert!(world.look().starts_with("ready"));
    }
    let said = world.said.borrow();
    assert_eq!(said.iter().filter(|line| line.starts_with("the hook for the OFED container could not be")).count(), 1);
}

/// A program registers and deregisters all the time, and the list is long.
#[test]
fn the_owners_are_told_once_a_minute() {
    let mut world = World::new();
    world.ask_to_unload();
    for second in 0..120 {
        world.node.load_own(NAME, "2.0.0", second + 1);
        assert!(world.look().starts_with("held: "));
        world.wait(SECOND);
    }
    let said = world.said.borrow();
    assert!(said.len() == 2 && said[0].contains(": 1 references") && said[1].contains(": 61 references"), "{said:?}");
}

/// A module that this pod has not loaded stays.
#[test]
fn the_end() {
    for (name, left) in [(NAME, false), ("nv_peer_mem", true)] {
        let mut world = World::new();
        world.node.load_own(name, "2.0.0", 0);
        assert!(world.keeper.unload());
        assert_eq!(world.node.own().is_some(), left);
    }
}

#[test]
fn the_end_with_registrations() {
    let mut world = World::new();
    world.node.load_own(NAME, "2.0.0", 1);
    assert!(!world.keeper.unload());
    let held = world.state();
    assert!(held.starts_with("held: ") && held.contains("is in use: 1 references"), "{held}");
}

/// The keeper looks until it is told to stop, and unloads the module then.
#[test]
fn serve_ends() {
    let world = World::new();
    world.node.load_own(NAME, "2.0.0", 0);
    let (doubles, run) = (world.doubles.clone(), world.run.clone());
    serve(world.keeper, || read(&run).is_some());
    assert_eq!(doubles.state.borrow().calls, [UNLOAD]);
    // A signal may come before the first look.
    let world = World::new();
    world.node.load_own(NAME, "2.0.0", 0);
    let doubles = world.doubles.clone();
    serve(world.keeper, || true);
    assert_eq!(doubles.state.borrow().calls, [UNLOAD]);
}

/// Makes a Secret, and headers with a program that adds the words of the certificate to a module.
fn signing(world: &World) -> PathBuf {
    let (secret, scripts) = (world.node.path("/secret"), world.node.path("/headers/scripts"));
    for directory in [&secret, &scripts] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(secret.join("tls.key"), "key").unwrap();
    fs::write(secret.join("tls.crt"), "first").unwrap();
    let program = scripts.join("sign-file");
    fs::write(&program, "#!/bin/sh\ncat \"$3\" >>\"$4\"\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.set().secret = Some(secret.clone());
    secret
}

#[test]
fn modules_are_signed_before_they_are_kept() {
    let mut world = World::new();
    let secret = signing(&world);
    world.look_until_ready();
    assert_eq!(world.did(), ["build", LOAD]);
    let kept = |world: &World| {
        let files = world.keeper.cache.modules(&world.keeper.key());
        files.iter().map(|file| fs::read_to_string(file).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(kept(&world), ["nv_peer_mem_callback.kofirst", "nvidia_peermem.kofirst"]);
    // A module that was signed with another certificate is built again.
    world.take_module();
    fs::write(secret.join("tls.crt"), "second").unwrap();
    world.wait(TAKEN);
    world.look_until_ready();
    assert_eq!(world.did(), ["build", LOAD]);
    assert_eq!(kept(&world), ["nv_peer_mem_callback.kosecond", "nvidia_peermem.kosecond"]);
}

#[test]
fn half_a_secret_and_a_refused_certificate_are_told() {
    let mut world = World::new();
    let secret = signing(&world);
    world.set().refused = Some("insmod: ERROR: could not insert module x.ko: Key was rejected by service");
    world.look();
    let said = world.look();
    assert!(said.starts_with("failed: insmod: ERROR") && said.contains("mokutil --import"), "{said}");
    assert!(!said.contains("Advice."), "nvpm's advice knows nothing of the Secret: {said}");
    fs::remove_file(secret.join("tls.key")).unwrap();
    let said = world.look();
    assert!(said.starts_with("failed: the Secret nv-peer-mem-signing lacks tls.key"), "{said}");
    world.did();
    world.set().secret = None;
    let _ = (world.wait_first(), world.look());
    let said = world.look();
    assert!(said.contains("loads only signed modules"), "{said}");
}
