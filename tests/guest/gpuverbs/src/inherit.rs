// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `inherit`: a registration that outlives, or is ended by another process
//! than, the one that made it.
//!
//! The *owner* allocates GPU memory and registers it; the *heir* gets the
//! owner's RDMA descriptor, by fork or through a socket. What the two do then,
//! and in which order, is on the command line.

use std::io::{self, Read, Write};
use std::mem::forget;
use std::net::Shutdown;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;

use crate::args::{usage, Args, Command, Opt};
use crate::buffer::Place;
use crate::errno;
use crate::expect::{is_result, OK};
use crate::failure::Failure;
use crate::gpu::{FreeBy, GpuMemory, Range};
use crate::machine::{self, Machine};
use crate::output;
use crate::process::{self, Child};
use crate::sys;
use crate::verbs::{Access, Device, Mr, Pd};

pub const COMMAND: Command = Command {
    name: "inherit",
    summary: "Registers GPU memory, and lets another process have a part in what becomes of it",
    options: &[
        &[
            Opt::required("offset", "OFFSET", "where in the BAR to allocate"),
            Opt::required("length", "SIZE", "how much to register"),
            Opt::required(
                "steps",
                "WHO-WHAT[:RESULT],…",
                "owner or heir, and free, register, dereg, close, exit or kill; or hold",
            ),
            Opt::optional("via", "HOW", "fork (the default) or socket"),
        ],
        machine::OPTIONS,
    ],
    run,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Owner,
    Heir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Gives the memory back.
    Free,
    /// Registers the owner's addresses once more.
    Register,
    Deregister,
    /// Closes the RDMA descriptor.
    Close,
    /// Ends without cleaning.
    Exit,
    /// Is killed.
    Kill,
    /// Not for the command line. The first order: the heir takes what it gets
    /// through a socket; the owner answers with the number of its child.
    Meet,
    /// Not for the command line. The owner waits for its child.
    Bury,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Says `holding` and waits for a line of input.
    Hold,
    Do {
        who: Who,
        what: What,
        expected: String,
    },
}

const WHO: &[(&str, Who)] = &[("owner", Who::Owner), ("heir", Who::Heir)];

const WHAT: &[(&str, What)] = &[
    ("free", What::Free),
    ("register", What::Register),
    ("dereg", What::Deregister),
    ("close", What::Close),
    ("exit", What::Exit),
    ("kill", What::Kill),
];

fn parse(text: &str) -> Result<Vec<Step>, Failure> {
    text.split(',').map(step).collect()
}

fn step(text: &str) -> Result<Step, Failure> {
    if text == "hold" {
        return Ok(Step::Hold);
    }
    let unknown = || usage(format!("--steps: '{text}' is no step"));
    let (act, expected) = text.split_once(':').unwrap_or((text, OK));
    let (who, what) = act.split_once('-').ok_or_else(unknown)?;
    let find = |word: &str| WHAT.iter().find(|(name, _)| *name == word);
    let (_, who) = WHO
        .iter()
        .find(|(name, _)| *name == who)
        .ok_or_else(unknown)?;
    let (_, what) = find(what).ok_or_else(unknown)?;
    if !is_result(expected) {
        return Err(unknown());
    }
    Ok(Step::Do {
        who: *who,
        what: *what,
        expected: expected.to_owned(),
    })
}

fn run(args: &Args) -> Result<(), Failure> {
    let steps = parse(args.text("steps").unwrap_or_default())?;
    let by_fork = args.choice("via", &[("fork", true), ("socket", false)])?;
    process::adopt_orphans().map_err(Failure::environment("adopting orphans"))?;
    let mut family = Family::start(args, by_fork)?;
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Hold => {
                output::line("holding");
                // Whatever comes, an end of input included, is the word to go on.
                let _ = io::stdin().read_line(&mut String::new());
            }
            Step::Do {
                who,
                what,
                expected,
            } => {
                let result = family.order(*who, *what)?;
                output::value(&format!("step_{number}"), &result);
                if result != *expected {
                    return Err(Failure::Unmet(format!(
                        "step {number}, {step:?}, ended with {result}"
                    )));
                }
            }
        }
    }
    family.dissolve()
}

/// One of the two, as this process sees it.
struct Member {
    child: Child,
    orders: UnixStream,
    alive: bool,
}

impl Member {
    fn new(child: Child, orders: UnixStream) -> Self {
        Self {
            child,
            orders,
            alive: true,
        }
    }

    /// Has it do something; what came of it.
    fn order(&mut self, what: What) -> Result<i32, Failure> {
        let asked = |error| Failure::unmet(format_args!("asking for {what:?}"))(error);
        self.orders.write_all(&[what as u8]).map_err(asked)?;
        let mut answer = [0; 4];
        self.orders.read_exact(&mut answer).map_err(asked)?;
        Ok(i32::from_ne_bytes(answer))
    }
}

struct Family {
    owner: Member,
    heir: Member,
    /// While the owner lives the heir is its child, not ours.
    heir_is_grandchild: bool,
}

impl Family {
    fn start(args: &Args, by_fork: bool) -> Result<Self, Failure> {
        let (to_owner, owner_end) = sockets()?;
        let (to_heir, heir_end) = sockets()?;
        let (outbox, inbox) =
            UnixDatagram::pair().map_err(Failure::environment("a pair of sockets"))?;
        // A stranger knows nothing of the owner's but what comes in its inbox.
        let stranger = match by_fork {
            true => None,
            false => Some(fork(|| stranger(&heir_end, &inbox))?),
        };
        let owner = fork(|| match Owner::start(args) {
            Ok(owner) => owner.serve(&owner_end, stranger.is_none().then_some(&heir_end), &outbox),
            Err(failure) => complain(&failure),
        })?;
        drop((owner_end, heir_end));
        let mut owner = Member::new(owner, to_owner);
        let number = owner.order(What::Meet)?;
        let child = stranger.unwrap_or(Child::of_number(number));
        let mut heir = Member::new(child, to_heir);
        match heir.order(What::Meet)? {
            0 => Ok(Self {
                owner,
                heir,
                heir_is_grandchild: by_fork,
            }),
            number => Err(Failure::Unmet(format!(
                "the heir got no descriptor: {}",
                errno::name(number)
            ))),
        }
    }

    fn order(&mut self, who: Who, what: What) -> Result<String, Failure> {
        let member = match who {
            Who::Owner => &mut self.owner,
            Who::Heir => &mut self.heir,
        };
        if !member.alive {
            return Err(usage(format!("--steps: the {who:?} has ended before")));
        }
        match what {
            What::Exit | What::Kill => {
                self.end(who, what)?;
                Ok(OK.to_owned())
            }
            _ => Ok(match member.order(what)? {
                0 => OK.to_owned(),
                number => errno::name(number),
            }),
        }
    }

    /// Ends one of them, and waits until it is over.
    fn end(&mut self, who: Who, what: What) -> Result<(), Failure> {
        let member = match who {
            Who::Owner => &mut self.owner,
            Who::Heir => &mut self.heir,
        };
        member.alive = false;
        if what == What::Kill {
            member.child.kill();
        } else {
            // What its reading end says when there is no more to do.
            let _ = member.orders.shutdown(Shutdown::Both);
        }
        let child = member.child;
        if who == Who::Heir && self.heir_is_grandchild && self.owner.alive {
            return match self.owner.order(What::Bury)? {
                0 => Ok(()),
                number => Err(Failure::Unmet(format!(
                    "the owner cannot wait for the heir: {}",
                    errno::name(number)
                ))),
            };
        }
        let status = child
            .wait()
            .map_err(Failure::unmet("waiting for a process"))?;
        match status.code() {
            Some(0) | None => Ok(()),
            Some(code) => Err(Failure::Unmet(format!("the {who:?} ended with {code}"))),
        }
    }

    fn dissolve(mut self) -> Result<(), Failure> {
        for who in [Who::Heir, Who::Owner] {
            let alive = match who {
                Who::Owner => self.owner.alive,
                Who::Heir => self.heir.alive,
            };
            if alive {
                self.end(who, What::Exit)?;
            }
        }
        Ok(())
    }
}

fn sockets() -> Result<(UnixStream, UnixStream), Failure> {
    UnixStream::pair().map_err(Failure::environment("a pair of sockets"))
}

fn fork(child: impl FnOnce() -> u8) -> Result<Child, Failure> {
    process::fork(child).map_err(Failure::environment("a new process"))
}

fn complain(failure: &Failure) -> u8 {
    eprintln!("gpuverbs: {failure}");
    failure.exit_status()
}

/// Does what comes in until the other end is shut.
fn obey(orders: &UnixStream, mut act: impl FnMut(What) -> i32) -> u8 {
    let mut orders = orders;
    let mut order = [0];
    while orders.read_exact(&mut order).is_ok() {
        let orders_known = WHAT.iter().map(|(_, what)| *what);
        let what = orders_known
            .chain([What::Meet, What::Bury])
            .find(|what| *what as u8 == order[0])
            .expect("both ends are the same program");
        if orders.write_all(&act(what).to_ne_bytes()).is_err() {
            return 1;
        }
    }
    0
}

fn number_of(result: io::Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(sys::EIO as i32),
    }
}

/// What the owner has, and an heir by fork too.
struct Owner {
    device: Arc<Device>,
    pd: Arc<Pd>,
    memory: GpuMemory,
    range: Range,
    region: Option<Mr>,
    connected: bool,
}

impl Owner {
    fn start(args: &Args) -> Result<Self, Failure> {
        let place = Place::aligned(args.required("offset")?, 0, args.required("length")?)?;
        let machine = Machine::open(args)?;
        let pd = Pd::allocate(&machine.device)?;
        let memory = machine
            .gpu
            .allocate(place.offset, place.length)
            .map_err(Failure::unmet("allocating GPU memory"))?;
        let length = usize::try_from(place.length).map_err(|_| usage("--length is too large"))?;
        let range = memory.range(0, length);
        output::value("address", format_args!("{:#x}", range.addr()));
        let region = pd
            .register(range, Access::ALL)
            .map_err(Failure::unmet("ibv_reg_mr()"))?;
        Ok(Self {
            device: machine.device,
            pd,
            memory,
            range,
            region: Some(region),
            connected: true,
        })
    }

    /// Makes the heir, and is one of the two from then on.
    fn serve(
        mut self,
        orders: &UnixStream,
        heirs: Option<&UnixStream>,
        outbox: &UnixDatagram,
    ) -> u8 {
        let heir = match heirs {
            Some(heirs) => process::fork(|| obey(heirs, |what| self.act(what))).map(Some),
            None => process::send_fd(outbox, self.device.command_fd()).map(|()| None),
        };
        let heir = match heir {
            Ok(heir) => heir,
            Err(error) => return complain(&Failure::unmet("making an heir")(error)),
        };
        let status = obey(orders, |what| match what {
            What::Meet => heir.map_or(0, Child::number),
            What::Bury => match heir {
                Some(heir) => number_of(heir.wait().map(|_| ())),
                None => sys::ECHILD as i32,
            },
            what => self.act(what),
        });
        // Nothing is cleaned up, as after a crash.
        forget(self);
        status
    }

    fn act(&mut self, what: What) -> i32 {
        number_of(match what {
            What::Free => self.memory.free(FreeBy::Ioctl),
            What::Register => self
                .pd
                .register(self.range, Access::ALL)
                .and_then(Mr::deregister),
            What::Deregister => match self.region.take() {
                Some(region) => region.deregister(),
                None => Err(io::Error::from_raw_os_error(sys::ENOENT as i32)),
            },
            What::Close if self.connected => {
                self.connected = false;
                self.device.hang_up();
                Ok(())
            }
            What::Close => Err(io::Error::from_raw_os_error(sys::EBADF as i32)),
            What::Meet | What::Bury | What::Exit | What::Kill => Ok(()),
        })
    }
}

/// An heir that has nothing but the descriptor.
fn stranger(orders: &UnixStream, inbox: &UnixDatagram) -> u8 {
    let mut descriptor = None;
    obey(orders, |what| {
        number_of(match what {
            What::Meet => process::receive_fd(inbox).map(|fd| descriptor = Some(fd)),
            What::Close if descriptor.take().is_some() => Ok(()),
            _ => Err(io::Error::from_raw_os_error(sys::EBADF as i32)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read() {
        let step = |who, what, expected: &str| Step::Do {
            who,
            what,
            expected: expected.to_owned(),
        };
        assert_eq!(
            parse("heir-register:EFAULT,hold,owner-kill").unwrap(),
            [
                step(Who::Heir, What::Register, "EFAULT"),
                Step::Hold,
                step(Who::Owner, What::Kill, OK),
            ]
        );
    }

    #[test]
    fn what_is_no_step_is_named() {
        for text in [
            "",
            "heir",
            "heir-",
            "owner-fly",
            "me-exit",
            "owner-free:WHAT",
            "hold,",
        ] {
            assert!(matches!(parse(text), Err(Failure::Usage(_))), "{text}");
        }
    }

    #[test]
    fn orders_are_obeyed_until_the_end() {
        let (near, far) = UnixStream::pair().unwrap();
        let child = process::fork(|| obey(&far, |what| what as i32 + 100)).unwrap();
        let mut member = Member::new(child, near);
        drop(far);
        for (_, what) in WHAT {
            assert_eq!(member.order(*what).unwrap(), *what as i32 + 100);
        }
        member.orders.shutdown(Shutdown::Both).unwrap();
        assert!(member.child.wait().unwrap().success());
    }
}
