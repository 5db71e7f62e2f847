// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! `serve`: keeps the module loaded, built for the driver and the RDMA core that run.
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use crate::actions::Actions;
use crate::build::Failed;
use crate::cache::{Cache, Key};
use crate::decide::{Do, State, Step, decide, wait};
use crate::disk::{self, Scratch};
use crate::kernel::Refused;
use crate::node::Node;
use crate::owners::{owners, who};
use crate::places::Missing;
use crate::report::Report;
use crate::settings::Settings;
use crate::sign::{self, Signer};

/// The time between two attempts after a failure: at first, and at most.
const FIRST: Duration = Duration::from_secs(15);
const LATEST: Duration = Duration::from_secs(600);
/// The time between two questions for the owners of registrations.
const OWNERS: Duration = Duration::from_secs(60);
/// The time after which the module is loaded again if somebody else has unloaded it, and nothing more has changed.
const TAKEN: Duration = Duration::from_secs(300);
const WAS_TAKEN: &str = "somebody else has unloaded the module, and may replace the driver or the RDMA core next. This pod \
                         waits until one of them changes, or 5 minutes. Restart the pod to load the module at once";
/// The pause between two looks at the node, in steps after which a signal is noticed.
const STEPS: usize = 20;
const STEP: Duration = Duration::from_millis(50);

/// What a module was built for, and the times when the operators' containers became ready.
type Neighbours = (Key, [Option<(i64, i64)>; 2]);

/// An attempt that has failed: the node, the state and the reason, the number of failures, and the time of the next
/// attempt.
struct Failure {
    key: Key,
    state: State,
    reason: String,
    count: u32,
    again: Duration,
}

/// Why an attempt has failed.
enum Why {
    Missing(Missing),
    Build(Failed),
    Refused(Refused),
}

pub struct Keeper<A> {
    pub node: Node,
    settings: Settings,
    cache: Cache,
    told: Report,
    actions: A,
    failure: Option<Failure>,
    /// The last failure to write the hook for the OFED container.
    unwritten: Option<String>,
    /// The owners of registrations, and the time of the question for them.
    owners: Option<(String, Duration)>,
    /// The node while the module was loaded, and the last time when it was.
    served: Option<(Neighbours, Duration)>,
    /// The node for which the kernel has refused the module of the cache.
    doubted: Option<Key>,
    /// The checksum of the certificate with which modules are signed.
    certificate: Option<String>,
}

impl<A: Actions> Keeper<A> {
    pub fn new(node: Node, settings: Settings, cache: Cache, told: Report, actions: A) -> Self {
        let (failure, unwritten, owners, served, doubted, certificate) = (None, None, None, None, None, None);
        Self { node, settings, cache, told, actions, failure, unwritten, owners, served, doubted, certificate }
    }

    fn tell(&mut self, state: State, reason: &str) {
        self.told.write(state, reason, &self.settings.name, self.actions.now());
    }

    fn key(&self) -> Key {
        let key = Key::new(&self.node, &self.settings.name, &self.settings.version);
        match &self.certificate {
            Some(certificate) => key.signed(certificate.clone()),
            None => key,
        }
    }

    /// Looks what signs modules. Returns it, or why modules cannot be signed.
    fn signer(&mut self) -> Result<Option<Signer>, String> {
        let signer = self.actions.signer()?;
        let certificate = signer.as_ref().map(Signer::identity).transpose();
        self.certificate = certificate.map_err(|error| format!("the certificate cannot be read: {error}"))?;
        Ok(signer)
    }

    /// Returns the module's name and version, as messages have them.
    fn module(&self) -> String {
        format!("{} {}", self.settings.name, self.settings.version)
    }

    /// Looks at the node once, and takes the next step.
    pub fn look(&mut self) {
        if self.settings.name == "nv_peer_mem" {
            self.write_hook();
        }
        let asked = self.told.was_asked();
        let Step { state, reason, todo } = decide(&self.node, &self.settings.name, &self.settings.version, asked);
        let was_taken = self.was_taken();
        match todo {
            Do::Load if was_taken => self.tell(State::Waiting, WAS_TAKEN),
            Do::Load => self.load(),
            Do::Unload => {
                self.tell(state, &reason);
                self.unload();
            }
            Do::Nothing if state == State::Held => self.hold(&reason),
            Do::Nothing => self.tell(state, &reason),
        }
    }

    /// Returns whether somebody else has unloaded the module, and nothing has changed since. The older OFED container
    /// unloads the module minutes before it removes the file of a ready OFED that an earlier container has left.
    fn was_taken(&mut self) -> bool {
        let own = self.node.own();
        let now = (self.key(), self.node.became_ready());
        let time = self.actions.now();
        if own.as_ref().is_some_and(|own| own.name == self.settings.name) {
            self.served = Some((now, time));
        } else if self.served.as_ref().is_some_and(|(then, since)| *then != now || time >= *since + TAKEN) {
            self.served = None;
        }
        self.served.is_some() && own.is_none()
    }

    /// Tells who keeps the module, and asks for the names once a minute: the kernel holds the module's lock while it
    /// writes the list, and each change of the list is a line of the log.
    fn hold(&mut self, reason: &str) {
        let now = self.actions.now();
        let known = self.owners.take().filter(|(_, asked)| now < *asked + OWNERS);
        let (who, asked) = known.unwrap_or_else(|| {
            let references = self.node.own().map_or(0, |own| own.references);
            (who(references, &owners(&self.node)), now)
        });
        self.tell(State::Held, &format!("{reason}: {who}"));
        self.owners = Some((who, asked));
    }

    /// Writes the hook for the OFED container, and tells a failure once.
    fn write_hook(&mut self) {
        let failed = self.actions.write_hook(&self.node).err();
        let failed = failed.map(|error| format!("the hook for the OFED container could not be written: {error}"));
        if let Some(failed) = failed.as_ref().filter(|_| failed != self.unwritten) {
            self.told.say(failed);
        }
        self.unwritten = failed;
    }

    // ---- loading ----

    /// Loads the module from the cache. If the cache lacks the module, builds it, and the next look loads it.
    fn load(&mut self) {
        let signer = match self.signer() {
            Ok(signer) => signer,
            Err(why) => {
                self.tell(State::Failed, &why);
                return;
            }
        };
        let key = self.key();
        let now = self.actions.now();
        let pause = self.failure.as_ref().filter(|failure| failure.key == key && now < failure.again);
        if let Some((state, reason)) = pause.map(|failure| (failure.state, failure.reason.clone())) {
            self.tell(state, &reason);
            return;
        }
        let files = self.cache.modules(&key);
        let done = if files.is_empty() || self.doubted.as_ref() == Some(&key) {
            self.doubted = None;
            self.build(&key, signer.as_ref())
        } else {
            self.insert(&files)
        };
        let Err(why) = done else { return };
        match why {
            Why::Missing(Missing(said)) => self.fail(key, State::Waiting, said),
            Why::Build(Failed::Because(said)) => {
                let log = self.log();
                self.fail(key, State::Failed, format!("the build: {said} (all of its output: {})", log.display()));
            }
            Why::Build(Failed::File(error)) => {
                self.fail(key, State::Failed, format!("a file cannot be read or written: {error}"));
            }
            Why::Build(Failed::Stopped) => {}
            Why::Refused(Refused(said)) => {
                // The entry of the cache may be wrong, so the next attempt builds the module again. The entry stays
                // until then, because the node may lack the parts of a build by now.
                self.doubted = Some(key.clone());
                let advice = sign::remedy(&said, signer.is_some())
                    .unwrap_or_else(|| self.actions.advice(&self.settings.name, &said));
                self.fail(key, State::Failed, format!("{said}. {advice}"));
            }
        }
    }

    /// Loads the files of the module into the kernel.
    fn insert(&mut self, files: &[PathBuf]) -> Result<(), Why> {
        self.tell(State::Loading, &format!("{}, from the cache", self.module()));
        self.actions.load(&self.node, files, &self.settings.parameters).map_err(Why::Refused)?;
        self.failure = None;
        self.check();
        Ok(())
    }

    /// Unloads the module if a container has begun to end while the module was being loaded. The container's script has
    /// looked for the module before, and does not look again.
    fn check(&mut self) {
        if let Some(reason) = wait(&self.node) {
            self.tell(State::Unloading, reason);
            self.unload();
        }
    }

    fn log(&self) -> PathBuf {
        self.cache.directory.join("build.log")
    }

    fn build(&mut self, key: &Key, signer: Option<&Signer>) -> Result<(), Why> {
        let places = self.actions.find(&self.node, &self.cache).map_err(Why::Missing)?;
        let driver = self.node.module("nvidia");
        let (headers, module) = (places.headers.display(), self.module());
        let neighbours = format!("{}, {}", places.driver, places.core);
        let text = format!("{module} for kernel {}, with {neighbours} and the headers in {headers}", key.kernel);
        self.tell(State::Building, &text);
        let file = |error| Why::Build(Failed::File(error));
        let work = Scratch::new(&self.actions.work()).map_err(file)?;
        let built = self.actions.build(&self.node, &places, &key.kernel, &self.settings.name, &work);
        let log = work.join("log");
        if log.exists() {
            disk::copy(&log, &self.log()).map_err(file)?;
        }
        let built = built.map_err(Why::Build)?;
        if *key != self.key() {
            // A neighbour was replaced during the build, so the module may be for either one.
            return Ok(());
        }
        if let Some(signer) = signer {
            let modules = key.files().map(|file| built.directory.join(file));
            signer.sign(&places.headers_root, &places.headers, &modules).map_err(Why::Build)?;
        }
        self.cache.store(key, &built.directory).map_err(file)?;
        let symbols = built.directory.join("nvidia.symvers");
        if let Some(driver) = driver.filter(|_| symbols.exists()) {
            self.cache.store_driver(&driver.identity, &symbols, &built.header).map_err(file)?;
        }
        Ok(())
    }

    /// Tells a failure, and puts the next attempt off. A change of the node ends the wait.
    fn fail(&mut self, key: Key, state: State, reason: String) {
        let count = self.failure.as_ref().filter(|last| last.key == key).map_or(0, |last| last.count + 1);
        let longest = if state == State::Waiting { FIRST } else { LATEST };
        let pause = FIRST.saturating_mul(1 << count.min(16)).min(longest);
        self.tell(state, &reason);
        self.failure = Some(Failure { key, state, reason, count, again: self.actions.now() + pause });
    }

    // ---- unloading ----

    /// Unloads the module unless programs use it, and names these programs. Returns whether this pod's module is gone.
    fn unload(&mut self) -> bool {
        let Some(own) = self.node.own().filter(|own| own.name == self.settings.name) else { return true };
        self.served = None;
        if let Err(Refused(said)) = self.actions.unload(&self.node, &own.name) {
            let who = who(own.references, &owners(&self.node));
            self.tell(State::Held, &format!("{said}: {who}"));
            return false;
        }
        self.tell(State::Unloaded, &format!("{} {}", own.name, own.version));
        true
    }
}

/// Keeps the module until STOPS, and then unloads the module.
pub fn serve<A: Actions>(mut keeper: Keeper<A>, stops: impl Fn() -> bool) {
    while !stops() {
        keeper.look();
        for _ in 0..STEPS {
            if !stops() {
                sleep(STEP);
            }
        }
    }
    keeper.unload();
    keeper.told.end();
}

#[cfg(test)]
mod tests;
