// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Registrations that outlive the process that made them, or that another process ends.
//!
//! The *owner* allocates GPU memory and registers it. The *heir* is another process, which receives
//! the owner's RDMA descriptor by fork or through a socket. The command line lists the steps of
//! both processes, in order.

use std::io::{self, BufRead, BufReader, Write};
use std::mem::{forget, take};
use std::net::Shutdown;
use std::os::unix::net::{UnixDatagram, UnixStream};

use anyhow::{bail, ensure, Context, Result};
use clap::ValueEnum;
use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;

use crate::gpu::{FreeBy, GpuMemory, Machine, Range};
use crate::process;
use crate::register::{register_all, Memory};
use crate::value::{hold, result_of, say, status_of, OK};
use crate::verbs::{Mr, ALL};

/// Registers GPU memory, and shares the registration with another process
#[derive(clap::Args)]
pub struct Inherit {
    #[command(flatten)]
    memory: Memory,
    /// Number of registrations
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// WHO is owner or heir; WHAT is free, register, dereg, close (the RDMA descriptor), exit
    /// (without cleaning up) or kill. A step may also be hold
    #[arg(long, required = true, value_delimiter = ',', value_name = "WHO-WHAT[:RESULT]")]
    steps: Vec<String>,
    /// How the heir gets the owner's objects
    #[arg(long, value_enum, default_value = "fork")]
    via: Via,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Via {
    Fork,
    Socket,
}

impl Inherit {
    pub fn run(self) -> Result<()> {
        let (to_owner, owner_end) = UnixStream::pair()?;
        let (to_heir, heir_end) = UnixStream::pair()?;
        let owner = process::fork(|| {
            process::end_with_parent();
            let owned = self.own(owner_end, heir_end);
            owned.unwrap_or_else(|error| status_of(Err(error)))
        })?;
        let mut owner = Member { child: owner, orders: BufReader::new(to_owner), alive: true };
        let heir: i32 = owner.order("meet")?.parse().context("the owner has no heir")?;
        let child = Pid::from_raw(heir);
        let mut heir = Member { child, orders: BufReader::new(to_heir), alive: true };
        let met = heir.order("meet")?;
        ensure!(met == OK, "the heir got no descriptor: {met}");
        for step in &self.steps {
            if step == "hold" {
                hold();
                continue;
            }
            let (act, expected) = step.split_once(':').unwrap_or((step, OK));
            let (member, what) = match act.split_once('-') {
                Some(("owner", what)) => (&mut owner, what),
                Some(("heir", what)) => (&mut heir, what),
                _ => bail!("'{step}' is not owner-WHAT or heir-WHAT"),
            };
            let result = match what {
                "exit" => member.end(None),
                "kill" => member.end(Some(Signal::SIGKILL)),
                _ => member.order(what),
            };
            let result = result.with_context(|| step.clone())?;
            ensure!(result == expected, "{step} ended with {result}");
        }
        for member in [heir, owner].iter_mut().filter(|member| member.alive) {
            member.end(None)?;
        }
        Ok(())
    }

    /// Runs the owner, which starts the heir and carries out orders. Returns the exit status.
    fn own(&self, orders: UnixStream, heirs: UnixStream) -> Result<u8> {
        let (outbox, inbox) = UnixDatagram::pair()?;
        let (mut owner, heir);
        if self.via == Via::Socket {
            // An heir that receives the descriptor through a socket is a stranger. It must have
            // only the descriptor from its inbox, so it is forked before the owner has objects.
            heir = process::fork_sibling(|| stranger(heirs, &inbox))?;
            owner = Owner::start(self)?;
            process::send_fd(&outbox, owner.machine.hca.command_fd())?;
        } else {
            owner = Owner::start(self)?;
            heir = process::fork_sibling(|| obey(heirs, |what| owner.act(what)))?;
        }
        let status = obey(orders, |what| match what {
            "meet" => heir.to_string(),
            what => owner.act(what),
        });
        // The owner's objects are not dropped, so that the process ends as after a crash.
        forget(owner);
        Ok(status)
    }
}

/// One of the two children of this process. The child is the owner or the heir.
struct Member {
    child: Pid,
    orders: BufReader<UnixStream>,
    alive: bool,
}

impl Member {
    /// Gives an order, and returns its result.
    fn order(&mut self, what: &str) -> Result<String> {
        ensure!(self.alive, "it has ended before");
        let mut answer = String::new();
        writeln!(self.orders.get_mut(), "{what}")?;
        self.orders.read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    /// Ends the child, and waits for its end.
    fn end(&mut self, signal: Option<Signal>) -> Result<String> {
        self.alive = false;
        match signal {
            Some(signal) => kill(self.child, signal)?,
            // Ends the child's input, so that the child ends by itself.
            None => self.orders.get_mut().shutdown(Shutdown::Both)?,
        }
        match waitpid(self.child, None)? {
            WaitStatus::Exited(_, 0) | WaitStatus::Signaled(..) => Ok(OK.to_owned()),
            status => bail!("it ended with {status:?}"),
        }
    }
}

/// Reads orders, and answers each order with the result of `act`, until the input ends. Returns the
/// exit status.
fn obey(orders: UnixStream, mut act: impl FnMut(&str) -> String) -> u8 {
    let mut orders = BufReader::new(orders);
    let mut order = String::new();
    while orders.read_line(&mut order).is_ok_and(|length| length > 0) {
        if writeln!(orders.get_mut(), "{}", act(order.trim())).is_err() {
            return 1;
        }
        order.clear();
    }
    0
}

/// The owner's objects. An heir by fork has copies of them.
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
        let regions = register_all(&machine.hca, range, inherit.count)?;
        Ok(Self { machine, memory, range, regions, connected: true })
    }

    fn act(&mut self, what: &str) -> String {
        result_of(&match what {
            "meet" => Ok(()),
            "free" => self.memory.free(FreeBy::Ioctl),
            "register" => self.machine.hca.register(self.range, ALL).and_then(Mr::deregister),
            "dereg" => take(&mut self.regions).into_iter().try_for_each(Mr::deregister),
            "close" if take(&mut self.connected) => {
                self.machine.hca.hang_up();
                Ok(())
            }
            _ => Err(io::Error::from(Errno::EBADF)),
        })
    }
}

/// Runs an heir that receives only the descriptor, through `inbox`. Returns its exit status.
fn stranger(orders: UnixStream, inbox: &UnixDatagram) -> u8 {
    let mut descriptor = None;
    obey(orders, |what| {
        let result = match what {
            "meet" => process::receive_fd(inbox).map(|fd| descriptor = Some(fd)),
            "close" if descriptor.take().is_some() => Ok(()),
            _ => Err(Errno::EBADF),
        };
        result_of(&result.map_err(io::Error::from))
    })
}
