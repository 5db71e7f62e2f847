// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects the names of hosts, users and processes on this machine, so that a report can leave them out.
use std::collections::{BTreeSet, HashSet};

use crate::read::machine::{Machine, base};
use crate::redact::patterns::{is_of_the_system, words};
use crate::text::clean;

const FIRST_PERSON: u32 = 1000;
const NOBODY: u32 = 65534;
/// The services that know users of this system alone, who have their homes and numbers in its files.
const LOCAL_SERVICES: [&str; 3] = ["files", "compat", "systemd"];
/// The variables with the name of the user who runs nvpm.
const PRESENT_USER: [&str; 3] = ["SUDO_USER", "LOGNAME", "USER"];

fn is_person(number: u32) -> bool {
    number >= FIRST_PERSON && number != NOBODY
}

pub fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_digit())
}

/// Returns the names that can identify somebody: no single characters, numbers or common names.
fn named(names: impl IntoIterator<Item = String>) -> HashSet<String> {
    let common = words("common");
    let is_telling =
        |name: &String| name.chars().count() > 1 && !is_number(name) && !common.contains(name.to_lowercase().as_str());
    names.into_iter().filter(is_telling).collect()
}

/// Returns words, in small letters, that tell nothing even if they are also somebody's name.
pub fn ordinary(machine: &Machine) -> HashSet<String> {
    let places = machine.glob(&["/sys/module/*", "/sys/class/infiniband/*", "/sys/class/net/*"]);
    let here = places.iter().map(|place| base(place).to_lowercase());
    words("common").into_iter().chain(words("ordinary")).map(str::to_owned).chain(here).collect()
}

/// Returns the names of the running processes of people.
pub fn jobs(machine: &Machine) -> BTreeSet<String> {
    jobs_by(machine, |process| machine.owner(process))
}

fn jobs_by(machine: &Machine, owner: impl Fn(&str) -> Option<u32>) -> BTreeSet<String> {
    let processes = machine.glob(&["/proc/[0-9]*"]);
    let of_people = processes.iter().filter(|process| owner(process).is_some_and(is_person));
    let names = of_people.map(|process| clean(&machine.text(&format!("{process}/comm"))));
    names.filter(|name| !is_of_the_system(name)).collect()
}

/// Returns the names of this machine and of the hosts in /etc/hosts, without their domains. A text may contain a host's
/// name with or without capitals, and `Redactor::is_host` compares small letters, so each name is added in small
/// letters, too.
pub fn hosts(machine: &Machine) -> HashSet<String> {
    let lines = machine.lines("/etc/hosts");
    let names = lines.iter().flat_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_whitespace().skip(1)
    });
    let labels = names.chain([machine.host.as_str()]).map(|name| name.split('.').next().unwrap_or_default());
    named(labels.flat_map(|label| [label.to_owned(), label.to_lowercase()]))
}

/// Returns the names of users whose numbers are in the range for people, of the present user, and of users who have a
/// home in /home. The name service is not asked, because it may be a server that does not answer, and a system like
/// LDAP need not list its users.
pub fn people(machine: &Machine) -> HashSet<String> {
    let users = machine.users();
    let of_people = users.iter().filter(|(_, number)| is_person(*number)).map(|(name, _)| name.clone());
    let present = PRESENT_USER.iter().filter_map(|name| std::env::var(name).ok());
    let homes = machine.glob(&["/home/*"]);
    let homes = homes.iter().map(|home| base(home).to_owned());
    named(of_people.chain(present).chain(homes))
}

/// Returns the services that know further users, by the configuration of the name service.
pub fn unasked_services(machine: &Machine) -> Vec<String> {
    services_of(&machine.all_text(&["/etc/nsswitch.conf"]))
}

fn services_of(configuration: &str) -> Vec<String> {
    let line = configuration.split('\n').find_map(|line| line.strip_prefix("passwd:")).unwrap_or_default();
    let words = line.split('#').next().unwrap_or_default().split_whitespace();
    // A word in square brackets says what to do after an answer.
    let services = words.filter(|word| !LOCAL_SERVICES.contains(word) && !word.contains(['[', ']', '=']));
    services.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    #[test]
    fn processes_of_people_have_private_names() {
        let made = Made::new();
        let owners =
            [(41, 999, "daemonjob"), (42, 1000, "firstjob"), (43, 60000, "lastjob"), (44, 65534, "nobodysjob")];
        made.change(owners.map(|(number, _, name)| format!("/proc/{number}/comm = {name}")));
        made.change(["/proc/45/comm = bash", "/proc/46/comm = endedjob"]);
        let owner = |process: &str| {
            let known = owners.iter().find(|(number, ..)| process == format!("/proc/{number}"));
            known.map(|(_, owner, _)| *owner).or((process == "/proc/45").then_some(1000))
        };
        let found = jobs_by(&made.read(), owner);
        assert_eq!(found, BTreeSet::from(["firstjob", "lastjob"].map(str::to_owned)));
    }

    #[test]
    fn people_have_numbers_in_a_range() {
        let people: Vec<u32> = [0, 999, 1000, 60000, 65534, 70000].into_iter().filter(|uid| is_person(*uid)).collect();
        assert_eq!(people, [1000, 60000, 70000]);
    }

    #[test]
    fn services_beside_the_files_know_further_users() {
        for (text, services) in [
            ("group: files ldap\npasswd:  files [NOTFOUND=return] sss systemd # ldap\n", &["sss"][..]),
            ("passwd: files systemd\n", &[]),
            ("passwd: compat ldap nis", &["ldap", "nis"]),
            ("", &[]),
        ] {
            assert_eq!(services_of(text), services, "{text}");
        }
    }

    #[test]
    fn common_names_identify_nobody() {
        let names = ["root", "Ubuntu", "x", "4711", "anna"].map(str::to_owned);
        assert_eq!(named(names), HashSet::from(["anna".to_owned()]));
    }
}
