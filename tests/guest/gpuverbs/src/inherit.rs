// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A registration that outlives, or is ended by another process than, the one
//! that made it.
//!
//! The *owner* allocates GPU memory and registers it; the *heir* gets the
//! owner's RDMA descriptor, by fork or through a socket. What the two do then,
//! and in which order, is on the command line.

use std::io::{self, Read, Write};
use std::mem::{forget, take};
use std::net::Shutdown;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::str::FromStr;

use anyhow::{bail, ensure, Context, Result};
use clap::ValueEnum;
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;

use crate::gpu::{FreeBy, GpuMemory, Machine, Range};
use crate::process;
use crate::register::{register_all, Memory};
use crate::value::{hold, name, say, status_of, OK};
use crate::verbs::{Mr, ALL};

/// Registers GPU memory, and lets another process have a part in what becomes of it
#[derive(clap::Args)]
pub struct Inherit {
    #[command(flatten)]
    memory: Memory,
    /// How often
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// owner or heir, and free, register, dereg, close, exit or kill; or hold
    #[arg(long, required = true, value_delimiter = ',', value_name = "WHO-WHAT[:RESULT]")]
    steps: Vec<Step>,
    /// How the heir gets what it has
    #[arg(long, value_enum, default_value = "fork")]
    via: Via,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Via {
    Fork,
    Socket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Who {
    Owner,
    Heir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Gives the memory back.
    Free,
    /// Registers the owner's addresses once more.
    Register,
    Dereg,
    /// Closes the RDMA descriptor.
    Close,
    /// Ends without cleaning.
    Exit,
    /// Is killed.
    Kill,
    /// The first order: the heir takes what it gets through a socket; the owner
    /// answers with the number of its child.
    #[value(skip)]
    Meet,
    /// The owner waits for its child.
    #[value(skip)]
    Bury,
}

const WHATS: [What; 8] = {
    use What::*;
    [Free, Register, Dereg, Close, Exit, Kill, Meet, Bury]
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Says `holding` and waits for a line of input.
    Hold,
    Do(Who, What, String),
}

impl FromStr for Step {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "hold" {
            return Ok(Self::Hold);
        }
        let (act, expected) = text.split_once(':').unwrap_or((text, OK));
        let (who, what) = act.split_once('-').context("not WHO-WHAT")?;
        match (Who::from_str(who, false), What::from_str(what, false)) {
            (Ok(who), Ok(what)) => Ok(Self::Do(who, what, expected.to_owned())),
            (Err(error), _) | (_, Err(error)) => bail!(error),
        }
    }
}

impl Inherit {
    pub fn run(self) -> Result<()> {
        set_child_subreaper(true)?;
        let mut family = Family::start(&self)?;
        for step in &self.steps {
            match step {
                Step::Hold => hold(),
                Step::Do(who, what, expected) => {
                    let result = family.order(*who, *what)?;
                    ensure!(result == *expected, "{step:?} ended with {result}");
                }
            }
        }
        family.dissolve()
    }
}

/// One of the two, as this process sees it.
struct Member {
    child: Pid,
    orders: UnixStream,
    alive: bool,
}

impl Member {
    /// Has it do something; what came of it.
    fn order(&mut self, what: What) -> Result<i32> {
        let mut answer = [0; 4];
        self.orders
            .write_all(&[what as u8])
            .and_then(|()| self.orders.read_exact(&mut answer))
            .with_context(|| format!("asking for {what:?}"))?;
        Ok(i32::from_ne_bytes(answer))
    }
}

struct Family {
    owner: Member,
    heir: Member,
    via: Via,
}

impl Family {
    fn start(inherit: &Inherit) -> Result<Self> {
        let (to_owner, owner_end) = UnixStream::pair()?;
        let (to_heir, heir_end) = UnixStream::pair()?;
        let (outbox, inbox) = UnixDatagram::pair()?;
        let via = inherit.via;
        // A stranger knows nothing of the owner's but what comes in its inbox.
        let stranger = match via {
            Via::Fork => None,
            Via::Socket => Some(process::fork(|| stranger(&heir_end, &inbox))?),
        };
        let heirs = (via == Via::Fork).then_some(&heir_end);
        let owner = process::fork(|| {
            let owner = Owner::start(inherit);
            let served = owner.and_then(|owner| owner.serve(&owner_end, heirs, &outbox));
            served.unwrap_or_else(|error| status_of(Err(error)))
        })?;
        drop((owner_end, heir_end));
        let mut owner = Member { child: owner, orders: to_owner, alive: true };
        let heir = owner.order(What::Meet)?;
        let child = stranger.unwrap_or(Pid::from_raw(heir));
        let mut heir = Member { child, orders: to_heir, alive: true };
        match heir.order(What::Meet)? {
            0 => Ok(Self { owner, heir, via }),
            number => bail!("the heir got no descriptor: {}", name(number)),
        }
    }

    fn member(&mut self, who: Who) -> &mut Member {
        match who {
            Who::Owner => &mut self.owner,
            Who::Heir => &mut self.heir,
        }
    }

    fn order(&mut self, who: Who, what: What) -> Result<String> {
        ensure!(self.member(who).alive, "the {who:?} has ended before");
        let number = match what {
            What::Exit | What::Kill => self.end(who, what)?,
            _ => self.member(who).order(what)?,
        };
        Ok(if number == 0 { OK.to_owned() } else { name(number) })
    }

    /// Ends one of them, and waits until it is over.
    fn end(&mut self, who: Who, what: What) -> Result<i32> {
        let member = self.member(who);
        member.alive = false;
        let child = member.child;
        if what == What::Kill {
            kill(child, Signal::SIGKILL)?;
        } else {
            // What its reading end says when there is no more to do.
            let _ = member.orders.shutdown(Shutdown::Both);
        }
        // While the owner lives an heir by fork is its child, not ours.
        if who == Who::Heir && self.via == Via::Fork && self.owner.alive {
            return self.owner.order(What::Bury);
        }
        match waitpid(child, None)? {
            WaitStatus::Exited(_, 0) | WaitStatus::Signaled(..) => Ok(0),
            status => bail!("the {who:?} ended with {status:?}"),
        }
    }

    fn dissolve(mut self) -> Result<()> {
        for who in [Who::Heir, Who::Owner] {
            if self.member(who).alive {
                let result = self.order(who, What::Exit)?;
                ensure!(result == OK, "waiting for the {who:?}: {result}");
            }
        }
        Ok(())
    }
}

/// Does what comes in until the other end is shut.
fn obey(mut orders: &UnixStream, mut act: impl FnMut(What) -> i32) -> u8 {
    let mut order = [0];
    while orders.read_exact(&mut order).is_ok() {
        let answer = act(WHATS[usize::from(order[0])]);
        if orders.write_all(&answer.to_ne_bytes()).is_err() {
            return 1;
        }
    }
    0
}

fn number_of<E: Into<io::Error>>(result: Result<(), E>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => error.into().raw_os_error().unwrap_or(libc::EIO),
    }
}

/// What the owner has, and an heir by fork too.
struct Owner {
    machine: Machine,
    memory: GpuMemory,
    range: Range,
    regions: Vec<Mr>,
    connected: bool,
}

impl Owner {
    fn start(inherit: &Inherit) -> Result<Self> {
        let machine = Machine::open()?;
        let (memory, range) = inherit.memory.allocate(&machine)?;
        say("address", format_args!("{:#x}", range.addr));
        let regions = register_all(&machine.pd, range, inherit.count)?;
        Ok(Self { machine, memory, range, regions, connected: true })
    }

    /// Makes the heir, and is one of the two from then on.
    fn serve(
        mut self,
        orders: &UnixStream,
        heirs: Option<&UnixStream>,
        outbox: &UnixDatagram,
    ) -> Result<u8> {
        let heir = match heirs {
            Some(heirs) => Some(process::fork(|| obey(heirs, |what| self.act(what)))?),
            None => {
                process::send_fd(outbox, self.machine.pd.device.command_fd())?;
                None
            }
        };
        let status = obey(orders, |what| match what {
            What::Meet => heir.map_or(0, Pid::as_raw),
            What::Bury => match heir {
                Some(heir) => number_of(waitpid(heir, None).map(drop)),
                None => libc::ECHILD,
            },
            what => self.act(what),
        });
        // Nothing is cleaned up, as after a crash.
        forget(self);
        Ok(status)
    }

    fn act(&mut self, what: What) -> i32 {
        number_of(match what {
            What::Free => self.memory.free(FreeBy::Ioctl),
            What::Register => self.machine.pd.register(self.range, ALL).and_then(Mr::deregister),
            What::Dereg => take(&mut self.regions).into_iter().try_for_each(Mr::deregister),
            What::Close if self.connected => {
                self.connected = false;
                self.machine.pd.device.hang_up();
                Ok(())
            }
            What::Close => Err(Errno::EBADF.into()),
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
            _ => Err(Errno::EBADF),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read() {
        let read = |text: &str| text.parse::<Step>().ok();
        let register = Step::Do(Who::Heir, What::Register, "EFAULT".to_owned());
        assert_eq!(read("heir-register:EFAULT"), Some(register));
        assert_eq!(read("hold"), Some(Step::Hold));
        assert_eq!(read("owner-kill"), Some(Step::Do(Who::Owner, What::Kill, OK.to_owned())));
        for text in ["", "heir", "heir-", "owner-fly", "owner-bury", "me-exit"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn orders_are_obeyed_until_the_end() {
        let (orders, far) = UnixStream::pair().unwrap();
        let child = process::fork(|| obey(&far, |what| what as i32 + 100)).unwrap();
        let mut member = Member { child, orders, alive: true };
        drop(far);
        for (place, what) in WHATS.into_iter().enumerate() {
            assert_eq!(member.order(what).unwrap(), place as i32 + 100);
        }
        member.orders.shutdown(Shutdown::Both).unwrap();
        assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
    }
}
