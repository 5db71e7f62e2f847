// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Describes histories in words.

use std::fmt;

use super::{
    act::{Act, DeviceWish, Pause, What, Who, Wish, World},
    settings::{SETTINGS, STEPS},
};

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allocate { place, gpu } => {
                write!(f, "allocates memory of GPU {gpu} at place {place}")
            }
            Self::Free { place } => write!(f, "frees the memory at place {place}"),
            Self::Register(wish) => write!(f, "registers {wish}"),
            Self::Deregister { which } => write!(f, "deregisters the registration {which}"),
            Self::Abandon { which } => {
                write!(f, "releases the registration {which} without unmapping it")
            }
            Self::Delist { place } => write!(f, "is no more listed by the memory at place {place}"),
            Self::RemoveDevice { which } => write!(f, "removes the device {which}"),
            Self::Fail { step, successes } => write!(
                f,
                "makes fail, after {successes} successes: {}",
                STEPS[step % STEPS.len()]
            ),
            Self::Answer { setting, value } => {
                write!(f, "sets to {value}: {}", SETTINGS[setting % SETTINGS.len()])
            }
            Self::Read => write!(f, "reads the module's files"),
            Self::Unload => write!(f, "unloads the module"),
            Self::Load {
                persistent,
                beside_peermem,
            } => write!(
                f,
                "loads the module, persistent_api_support={}{}",
                u8::from(*persistent),
                if *beside_peermem {
                    ", beside nvidia_peermem"
                } else {
                    ""
                }
            ),
            Self::Leave { pages } => write!(
                f,
                "has left behind, but for two, as many {} as it may",
                if *pages { "pages" } else { "registrations" }
            ),
        }
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} bytes at {:#x} for ", self.len, self.address)?;
        match self.device {
            DeviceWish::Shared(at) => write!(f, "device {at}")?,
            DeviceWish::New => write!(f, "a new device")?,
            DeviceWish::NoPci => write!(f, "a device that is not on PCI")?,
            DeviceWish::NeverComplete => write!(f, "a device that cannot give it up")?,
        }
        if self.cannot_be_revoked {
            write!(f, ", as a queue")?;
        }
        if self.device_fails {
            write!(f, "; the device fails")?;
        }
        Ok(())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Who {
            process,
            uid,
            born,
            exiting,
        } = self.who;
        write!(f, "process {process}")?;
        if born > 1 {
            write!(f, " (a later one)")?;
        }
        if exiting {
            write!(f, " (exiting)")?;
        }
        write!(f, " of user {uid} {}", self.what)?;
        let Pause {
            after: Some(after),
            acts,
            again_after,
        } = self.pause
        else {
            return Ok(());
        };
        write!(f, "; stops at point {after} for {acts} acts")?;
        match again_after {
            Some(after) => write!(f, ", then {after} points on"),
            None => Ok(()),
        }
    }
}

/// Returns a history in words.
pub(super) fn in_words(world: &World, acts: &[Act]) -> String {
    let lines = acts
        .iter()
        .enumerate()
        .map(|(at, act)| format!("  {}. {act}\n", at + 1));
    format!("the world: {world:?}\n{}", lines.collect::<String>())
}
