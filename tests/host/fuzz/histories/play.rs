// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Runs a history. The acts begin in order, each in its own thread. If an act stops before its end,
//! it continues when a given number of other acts have begun. If an act waits for another act, it
//! continues when the wait ends.

use std::rc::Rc;

use loom::thread::{JoinHandle, Stopped};

use super::{
    act::{name, Act, Pause, What, Who, World, KINDS_OF_ACTS},
    coverage,
    overlap::Overlap,
    settings,
    stage::{become_one_of, Stage},
    verify,
};
use crate::world::{self, world};

/// The largest number of acts that can be in progress at the same time.
const MOST: usize = 5;

/// An act in progress.
struct Begun {
    act: Act,
    handle: JoinHandle<()>,
    overlap: Rc<Overlap>,
    /// The stops that are still to come. The next stop is the last element. Each element is the
    /// number of points that the act passes before it stops.
    stops: Vec<Option<u32>>,
    /// The number of points that the act had passed before its stop.
    stopped_at: u32,
    /// The number of acts that begin before this act continues.
    waits: u32,
}

/// A history that is being played.
struct Play {
    stage: Rc<Stage>,
    begun: Vec<Begun>,
}

/// Runs a history in a new world, and checks that nothing is left at the end.
pub(super) fn play(history: World, acts: &[Act]) {
    world::run(history.core, || {
        let faults = &world().faults;
        faults.reuse_tables.set(history.reuses_tables);
        faults.ranges.set(history.ranges);
        faults.unasked.set(history.unasked);
        faults.bus_offset.set(history.bus_offset);
        faults.coherent.set(history.coherent);
        let mut play = Play {
            stage: Stage::new(history),
            begun: Vec::new(),
        };
        if let Some(persistent) = history.loaded {
            play.begin(by_somebody(What::Load {
                persistent,
                beside_peermem: false,
            }));
        }
        for act in acts {
            play.begin(*act);
        }
        play.end();
    });
}

/// Returns an act that no other act interrupts.
fn by_somebody(what: What) -> Act {
    Act {
        kind: KINDS_OF_ACTS,
        what,
        who: Who {
            process: 1,
            uid: 1000,
            born: 1,
            exiting: false,
        },
        pause: Pause::default(),
    }
}

impl Play {
    /// Begins an act, and continues the acts that have waited for enough other acts.
    fn begin(&mut self, act: Act) {
        if self.begun.len() >= MOST {
            return;
        }
        let overlap = Rc::new(Overlap::new());
        for one in &self.begun {
            overlap.add(&one.act.what);
        }
        let Some(work) = self.stage.work(&act, &overlap) else {
            return;
        };
        coverage::begins(act.kind);
        for one in &mut self.begun {
            one.overlap.add(&act.what);
            one.waits = one.waits.saturating_sub(1);
            coverage::between(one.act.kind, one.stopped_at, act.kind);
        }
        let Pause {
            after, again_after, ..
        } = act.pause;
        let stops = match overlap.may_stop() {
            true => vec![again_after.filter(|_| after.is_some()), after],
            false => Vec::new(),
        };
        let who = act.who;
        let handle = world::spawn(name(act.kind), who.process, move || {
            become_one_of(who);
            work();
        });
        self.begun.push(Begun {
            act,
            handle,
            overlap,
            stops,
            stopped_at: 0,
            waits: 0,
        });
        self.run(self.begun.len() - 1);
        self.go_on(|one| one.waits == 0);
    }

    /// Lets an act run until it stops.
    fn run(&mut self, at: usize) {
        let one = &mut self.begun[at];
        let points = one.stops.pop().flatten();
        match one.handle.go_on(points) {
            Stopped::Over => {
                self.begun.remove(at);
                if self.begun.is_empty() {
                    verify::quiet(&self.stage);
                }
            }
            Stopped::Paused => {
                one.stopped_at += points.unwrap_or(0) + 1;
                one.waits = one.act.pause.acts + 1;
            }
            // After its wait, the act must still stop at the same point, so the number of its
            // remaining points is kept.
            Stopped::Waiting => one.stops.push(one.handle.points_left()),
        }
    }

    /// Continues the acts that are paused and for which `may` returns true, the oldest act first.
    fn go_on(&mut self, may: impl Fn(&Begun) -> bool) {
        let can = |one: &Begun| one.handle.stopped() == Stopped::Paused && may(one);
        while let Some(at) = self.begun.iter().position(can) {
            self.run(at);
        }
    }

    /// Ends all acts in progress, and checks that nothing is left.
    fn end(&mut self) {
        self.go_on(|_| true);
        settings::nothing_fails();
        for what in self.stage.last_acts() {
            self.begin(by_somebody(what));
            self.go_on(|_| true);
        }
        let waiting: Vec<_> = self.begun.iter().map(|one| name(one.act.kind)).collect();
        assert!(
            waiting.is_empty(),
            "deadlock: these wait for ever: {waiting:?}"
        );
    }
}
