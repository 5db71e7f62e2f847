// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Asks the RDMA core for the objects of its devices, through a netlink socket, as the tool `rdma` does. Each user may
//! ask, and nothing changes at a device.
//!
//! A list has a name as if it were a file, so that the reading process asks for it: a driver that hangs stops only that
//! process. On a machine that is made of files, such a file has the bytes that the kernel would send.
use std::io;
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send, socket_with,
};

/// The directory of the names.
pub const PLACE: &str = "/rdma-netlink/";
/// The names of lists, with the kernel's numbers of the commands (`enum rdma_nldev_command`).
const COMMANDS: [(&str, u16); 5] = [("dev", 1), ("qp", 10), ("mr", 13), ("pd", 14), ("ctx", 22)];
/// The attribute that names a device by its number.
const DEV_INDEX: u16 = 1;

/// The kernel's number of this part of the RDMA core, which stands above the number of the command.
const NLDEV: u16 = 5;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// The sizes of a message's head and of an attribute's head.
const HEAD: usize = 16;
const ATTRIBUTE: usize = 4;
/// The two highest bits of an attribute's kind are flags.
const KIND: u16 = 0x3FFF;
/// The kernel sends at most 32 KiB at once.
const ROOM: usize = 1 << 16;

/// Returns the name of a list: for the whole machine, or for a device.
pub fn name_of(list: &str, device: Option<u32>) -> String {
    device.map_or_else(|| format!("{PLACE}{list}"), |number| format!("{PLACE}{list}/{number}"))
}

/// Returns the command and the device of a name; None for the name of a file.
pub fn parsed(path: &Path) -> Option<(u16, Option<u32>)> {
    let name = path.to_str()?.strip_prefix(PLACE)?;
    let (list, device) = name.split_once('/').map_or((name, None), |(list, device)| (list, Some(device)));
    let (_, command) = COMMANDS.iter().find(|(known, _)| *known == list)?;
    match device {
        None => Some((*command, None)),
        Some(number) => Some((*command, Some(number.parse().ok()?))),
    }
}

/// Returns the messages of a list. After MOST bytes, the rest of the list is left out.
pub fn dump(command: u16, device: Option<u32>, most: Option<u64>) -> io::Result<Vec<u8>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::RDMA))?;
    bind(&socket, &netlink::SocketAddrNetlink::new(0, 0))?;
    send(&socket, &request(command, device), SendFlags::empty())?;
    let (mut found, mut room) = (Vec::new(), vec![0; ROOM]);
    loop {
        let (_, length) = match recv(&socket, room.as_mut_slice(), RecvFlags::empty()) {
            Err(rustix::io::Errno::INTR) => continue,
            said => said?,
        };
        for message in messages(room.get(..length).unwrap_or_default()) {
            match message.kind {
                NLMSG_DONE | NLMSG_ERROR => return failure(message.body).map_or(Ok(found), Err),
                _ => found.extend_from_slice(message.whole),
            }
        }
        if most.is_some_and(|most| found.len() as u64 >= most) {
            return Ok(found);
        }
    }
}

fn request(command: u16, device: Option<u32>) -> Vec<u8> {
    let mut body = Vec::new();
    if let Some(number) = device {
        body.extend((ATTRIBUTE as u16 + 4).to_ne_bytes());
        body.extend(DEV_INDEX.to_ne_bytes());
        body.extend(number.to_ne_bytes());
    }
    let mut found = ((HEAD + body.len()) as u32).to_ne_bytes().to_vec();
    found.extend(((NLDEV << 10) | command).to_ne_bytes());
    found.extend((REQUEST | DUMP).to_ne_bytes());
    found.extend(1_u32.to_ne_bytes());
    found.extend(0_u32.to_ne_bytes());
    found.extend(body);
    found
}

/// Returns the error with which a list ends; None after a whole list.
fn failure(body: &[u8]) -> Option<io::Error> {
    let code = i32::from_ne_bytes(body.first_chunk().copied().unwrap_or_default());
    (code < 0).then(|| io::Error::from_raw_os_error(code.saturating_neg()))
}

/// A message of the kernel.
struct Message<'a> {
    kind: u16,
    body: &'a [u8],
    /// The message with its head, and with the bytes that fill up its last word.
    whole: &'a [u8],
}

/// Returns the messages. A message that is cut ends the list, and its beginning counts.
fn messages(mut data: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*data.first_chunk()?)).ok().filter(|size| *size >= HEAD)?;
        let kind = u16::from_ne_bytes(*data.get(4..)?.first_chunk()?);
        let body = data.get(HEAD..length.min(data.len()))?;
        let (whole, rest) = data.split_at(length.next_multiple_of(4).min(data.len()));
        data = rest;
        Some(Message { kind, body, whole })
    })
}

/// Returns the kind and the contents of each attribute. An attribute that is cut ends the list.
pub fn attributes(mut data: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*data.first_chunk()?));
        let kind = u16::from_ne_bytes(*data.get(2..)?.first_chunk()?) & KIND;
        let value = data.get(ATTRIBUTE..length)?;
        data = data.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns the attributes of each message of a list, as bytes.
pub fn bodies(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    messages(data).map(|message| message.body)
}

/// Compiles assertions in C with the kernel's header.
#[cfg(test)]
pub fn assert_header(assertions: &str) {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler);
    command.args(["-fsyntax-only", "-x", "c", "-"]).stdin(Stdio::piped());
    let mut child = command.spawn().expect("a C compiler");
    let source = format!("#include <rdma/rdma_netlink.h>\n#include <linux/netlink.h>\n{assertions}");
    child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "a C compiler and <rdma/rdma_netlink.h> are needed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_header() {
        let commands = ["GET", "RES_QP_GET", "RES_MR_GET", "RES_PD_GET", "RES_CTX_GET"];
        let mut numbers: Vec<(String, u16)> = commands
            .iter()
            .zip(COMMANDS)
            .map(|(name, (_, number))| (format!("RDMA_NLDEV_CMD_{name}"), number))
            .collect();
        let others = [
            ("RDMA_NL_NLDEV", NLDEV),
            ("RDMA_NLDEV_ATTR_DEV_INDEX", DEV_INDEX),
            ("NLMSG_ERROR", NLMSG_ERROR),
            ("NLMSG_DONE", NLMSG_DONE),
            ("NLM_F_REQUEST", REQUEST),
            ("NLM_F_DUMP", DUMP),
            ("NLMSG_HDRLEN", HEAD as u16),
            ("NLA_HDRLEN", ATTRIBUTE as u16),
            ("(NLA_TYPE_MASK & 0xffff)", KIND),
        ];
        numbers.extend(others.map(|(name, number)| (name.to_owned(), number)));
        let line = |(name, number): &(String, u16)| format!("_Static_assert({name} == {number}, \"{name}\");\n");
        assert_header(&numbers.iter().map(line).collect::<Vec<_>>().concat());
    }

    #[test]
    fn a_list_has_a_name() {
        for (list, device, asked) in [("dev", None, Some((1, None))), ("mr", Some(7), Some((13, Some(7))))] {
            assert_eq!(parsed(name_of(list, device).as_ref()), asked);
        }
        for path in ["/rdma-netlink/cq/0", "/rdma-netlink/mr/x", "/root/rdma-netlink/mr/0", "/proc/stat"] {
            assert_eq!(parsed(path.as_ref()), None, "{path}");
        }
    }

    #[test]
    fn a_request_has_the_form_of_the_kernel() {
        let number = |value: u16| value.to_ne_bytes().to_vec();
        let head =
            |size: u16, kind| [number(size), number(0), number(kind), number(0x301), vec![1, 0, 0, 0, 0, 0, 0, 0]];
        if cfg!(target_endian = "little") {
            assert_eq!(request(1, None), head(16, 0x1401).concat());
            assert_eq!(request(13, Some(3)), [head(24, 0x140D).concat(), vec![8, 0, 1, 0, 3, 0, 0, 0]].concat());
        }
    }

    #[test]
    fn errors_end_a_list() {
        assert!(failure(&[]).is_none() && failure(&0_i32.to_ne_bytes()).is_none());
        assert_eq!(failure(&(-95_i32).to_ne_bytes()).unwrap().raw_os_error(), Some(95));
    }

    #[test]
    fn a_list_that_is_cut_or_wrong_ends() {
        let good = [8, 0, 1, 0, 3, 0, 0, 0, 5, 0, 2, 0, 7, 0, 0, 0];
        let found: Vec<_> = attributes(&good).collect();
        assert_eq!(found, [(1, [3, 0, 0, 0].as_slice()), (2, [7].as_slice())]);
        for length in 0..good.len() {
            assert!(attributes(&good[..length]).count() < 2 + usize::from(length > 12));
        }
        assert_eq!(attributes(&[3, 0, 1, 0, 0, 0, 0, 0]).count(), 0);
        let message = request(13, Some(3));
        for length in 0..=message.len() {
            let found: Vec<&[u8]> = bodies(&message[..length]).collect();
            assert_eq!(found.len(), usize::from(length >= HEAD));
        }
        assert_eq!(bodies(&[0; 32]).count(), 0);
    }
}
