// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says what a report contains, and what was taken out.
use crate::redact::redactor::Redactor;
use crate::show::release::release;

const KEPT: &str = "\
Kept: models and versions, PCI addresses, addresses within the kernel, options of modules, numbers
of processes and users, and names of programs that belong to the system. A name that is also an
ordinary word is replaced only where the kernel or nvpm names a process, a user or a host by it.
Read it before you give it to anybody: no program knows all of your secrets.
";
pub fn readme(redactor: Option<&Redactor>) -> String {
    let out = redactor.map_or_else(|| "nothing, as asked (--as-it-is)".to_owned(), Redactor::counted);
    let services = redactor.map_or_else(String::new, |redactor| redactor.unasked.join(", "));
    let unasked = if services.is_empty() { services } else { no_names(&services) };
    format!("A report of nvpm {}, for a bug report of nv_peer_mem.\nTaken out: {out}.\n{unasked}{KEPT}", release())
}

fn no_names(services: &str) -> String {
    format!(
        "Perhaps not taken out: names of users, because nvpm does not ask the name service of this machine ({services}). \
         Only\nnames in /etc/passwd and /home are known.\n"
    )
}
