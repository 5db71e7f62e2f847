// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Makes a directory with the files from which nvpm and the service read the state of a machine. At first the machine
//! has no defect, and a GPU and an RDMA device are below one switch. The lines of a table change the machine.
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::rdma;
use super::table::{unescaped, word_of};

const PCI: &str = "/sys/bus/pci/devices";
const SWITCH: &str = "pci0000:00/0000:00:01.0/0000:01:00.0";
const CONF: &str = "/etc/infiniband/nv_peer_mem.conf";
/// Short names for long paths in a table.
pub const ALIASES: [(&str, &str); 8] = [
    ("@figures", "/sys/module/nv_peer_mem/statistics"),
    ("@parameters", "/sys/module/nv_peer_mem/parameters"),
    ("@list", "/proc/driver/nv_peer_mem/regions"),
    ("@pairs", "/proc/driver/nv_peer_mem/pairs"),
    ("@conf", CONF),
    ("@kernel", "/proc/sys/kernel/osrelease"),
    ("@pci", PCI),
    ("@switch", SWITCH),
];
/// The files that only the packages of `nv_peer_mem` install, beside the module and its configuration.
const PACKAGED: [&str; 4] = [
    "/etc/init.d/nv_peer_mem",
    "/usr/lib/systemd/system/nv_peer_mem.service",
    "/usr/src/nvidia-peer-memory-2.0.0",
    "/var/lib/dkms/nvidia-peer-memory",
];
/// The texts with which sysfs shows the states of ports.
const STATES: [&str; 6] = ["1: DOWN", "2: INIT", "4: ACTIVE", "2: Polling", "3: Disabled", "5: LinkUp"];
/// The identifiers of the addresses of a port: two local ones, two of IPv4, and an empty one.
const GIDS: [&str; 5] = [
    "fe80:0000:0000:0000:0e42:a1ff:fe00:0001",
    "fe80:0000:0000:0000:0e42:a1ff:fe00:0001",
    "0000:0000:0000:0000:0000:ffff:0a00:0001",
    "0000:0000:0000:0000:0000:ffff:0a00:0001",
    "0000:0000:0000:0000:0000:0000:0000:0000",
];

pub struct Machine {
    pub root: PathBuf,
}

impl Machine {
    pub fn new(root: &Path) -> Self {
        let machine = Self { root: root.to_owned() };
        for line in include_str!("good_machine").lines().filter(|line| line.starts_with('/')) {
            machine.change(line);
        }
        machine.secure_boot("0");
        let bridges = ["0000:02:00.0", "0000:02:01.0"].map(|below| format!("{SWITCH}/{below}"));
        machine.bridges("0", &["pci0000:00/0000:00:01.0", SWITCH, &bridges[0], &bridges[1]]);
        machine.gpu(&format!("{SWITCH}/0000:02:00.0/0000:03:00.0"), "0", "0x2330");
        machine.nic("mlx5_0", &format!("{SWITCH}/0000:02:01.0/0000:04:00.0"), "0", "InfiniBand");
        machine
    }

    /// Applies a line of a table.
    pub fn change(&self, line: &str) {
        let (first, rest) = word_of(line);
        let words: Vec<&str> = rest.split_whitespace().collect();
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|error| panic!("{line}: {error}"));
        match (first, words.as_slice()) {
            ("-", paths) => {
                for path in paths {
                    self.gone(path);
                }
                self.without_packages();
            }
            (path, []) if path.ends_with('/') => drop(self.at(&format!("{path}x"))),
            (path, _) if path.starts_with('/') => self.change_file(path, rest),
            ("renamed", []) => self.renamed(),
            ("mode", [mode, path]) => {
                let mode = u32::from_str_radix(mode, 8).unwrap();
                fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
            }
            ("zeros", [count, paths @ ..]) => {
                let count = usize::try_from(number(count)).unwrap();
                for path in paths {
                    self.write(path, &vec![0; count]);
                }
            }
            ("byte", [path, at, value]) => {
                let (mut bytes, at) = (fs::read(self.at(path)).unwrap(), usize::try_from(number(at)).unwrap());
                bytes[at] = u8::try_from(number(value)).unwrap();
                self.write(path, &bytes);
            }
            ("pci", [path, vendor, kind, node]) => self.pci(path, vendor, kind, node),
            ("link", [pci, speed, width]) => self.link(pci, [speed, width], [speed, width]),
            ("link", [pci, speed, width, most]) => self.link(pci, [speed, width], [most, width]),
            ("link", [pci, speed, width, most, widest]) => self.link(pci, [speed, width], [most, widest]),
            ("bridges", [node, paths @ ..]) => self.bridges(node, paths),
            ("acs", [pci, control]) => self.acs(pci, u16::try_from(number(control)).unwrap()),
            ("settings", [pci, control]) => self.settings(pci, control),
            ("iommu", [pci, kind]) => self.iommu(pci, kind),
            ("drive", [pci, driver]) => self.drive(pci, driver),
            ("gpu", [path, node]) => self.gpu(path, node, "0x2330"),
            ("gpu", [path, node, product]) => self.gpu(path, node, product),
            ("bar1", [pci, mib]) => self.bar1(pci, number(mib), 0),
            ("bar1", [pci, mib, largest]) => self.bar1(pci, number(mib), number(largest)),
            ("nic", [name, path, node]) => self.nic(name, path, node, "InfiniBand"),
            ("nic", [name, path, node, layer]) => self.nic(name, path, node, layer),
            ("port", [nic, port, state, physical, layer]) => self.port(nic, port, state, physical, layer),
            ("no_devices", []) => self.no_devices(),
            ("far", [node]) => self.far(node),
            ("many_devices", []) => self.many_devices(),
            ("grace", [product]) => self.grace(product),
            ("secure_boot", [on]) => self.secure_boot(on),
            ("without_packages", []) => self.without_packages(),
            ("process", [process, command, pinned, files @ ..]) => self.process(process, command, pinned, files),
            ("rdma", [list, device, words @ ..]) => {
                self.append(&rdma::file(list, device), &rdma::message(list, device, words));
                // A device without registrations has an empty list.
                self.append(&rdma::file("mr", device), &[]);
            }
            _ => panic!("no change: {line}"),
        }
    }

    // ---- files ----

    /// Returns the place of a file, whose directory exists after that.
    fn at(&self, path: &str) -> PathBuf {
        let place = self.root.join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    fn exists(&self, path: &str) -> bool {
        self.root.join(path.trim_start_matches('/')).exists()
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        fs::write(self.at(path), bytes).unwrap();
    }

    fn append(&self, path: &str, bytes: &[u8]) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.at(path)).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn put(&self, path: &str, text: &str) {
        self.write(path, format!("{text}\n").as_bytes());
    }

    fn change_file(&self, path: &str, rest: &str) {
        let (how, text) = word_of(rest);
        match how {
            "->" => self.lead(path, Path::new(text)),
            "=" => self.write(path, &[unescaped(text), b"\n".to_vec()].concat()),
            ":=" => self.write(path, &unescaped(text)),
            "+=" => self.append(path, &[unescaped(text), b"\n".to_vec()].concat()),
            _ => panic!("no change of a file: {path} {rest}"),
        }
    }

    /// Makes a symbolic link.
    fn lead(&self, path: &str, target: &Path) {
        let place = self.at(path);
        if place.is_symlink() || place.exists() {
            fs::remove_file(&place).unwrap();
        }
        symlink(target, place).unwrap();
    }

    fn gone(&self, path: &str) {
        let place = self.root.join(path.trim_matches('/'));
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&place).unwrap(),
            Ok(_) => fs::remove_file(&place).unwrap(),
            Err(_) => {}
        }
    }

    /// Removes the rest of the packages from a machine that has neither the module nor its configuration any more. Such
    /// a machine has nothing of the packages.
    fn without_packages(&self) {
        if !self.exists("/modinfo/nv_peer_mem") && !self.exists(CONF) {
            for path in PACKAGED {
                self.gone(path);
            }
        }
    }

    /// Loads the module under the name `nvidia_peermem`, in place of the marker, as a pod does. The packages are not
    /// installed.
    fn renamed(&self) {
        self.gone("/sys/module/nvidia_peermem");
        self.gone("/sys/module/nv_peer_mem/holders");
        fs::rename(self.at("/sys/module/nv_peer_mem"), self.at("/sys/module/nvidia_peermem")).unwrap();
        let wants = "/etc/systemd/system/multi-user.target.wants";
        for path in ["/modinfo/nv_peer_mem", "/modinfo/nv_peer_mem_callback", CONF, wants] {
            self.gone(path);
        }
        self.without_packages();
    }

    // ---- PCI ----

    /// Adds a device at a path, which begins with the bridges above the device.
    fn pci(&self, path: &str, vendor: &str, kind: &str, node: &str) {
        let name = path.rsplit('/').next().unwrap();
        for (attribute, text) in [("vendor", vendor), ("class", kind), ("numa_node", node)] {
            self.put(&format!("/sys/devices/{path}/{attribute}"), text);
        }
        self.lead(&format!("{PCI}/{name}"), Path::new(&format!("../../../devices/{path}")));
        self.link(name, ["32.0", "16"], ["32.0", "16"]);
        self.write(&format!("/sys/devices/{path}/config"), &[0; 256]);
    }

    /// Sets the current and the best state of a link: the speed and the width.
    fn link(&self, pci: &str, now: [&str; 2], best: [&str; 2]) {
        for (when, [speed, width]) in [("current", now), ("max", best)] {
            self.put(&format!("{PCI}/{pci}/{when}_link_speed"), &format!("{speed} GT/s PCIe"));
            self.put(&format!("{PCI}/{pci}/{when}_link_width"), width);
        }
    }

    fn bridges(&self, node: &str, paths: &[&str]) {
        for path in paths {
            self.pci(path, "0x8086", "0x060400", node);
            self.acs(path.rsplit('/').next().unwrap(), 0);
        }
    }

    /// Sets the ACS control register. Another capability precedes the ACS capability, so nvpm has to follow the list of
    /// capabilities.
    fn acs(&self, pci: &str, control: u16) {
        let mut config = vec![0; 4096];
        config[0x100..0x104].copy_from_slice(&0x1401_0001_u32.to_le_bytes());
        config[0x140..0x144].copy_from_slice(&0x0001_000D_u32.to_le_bytes());
        config[0x144..0x146].copy_from_slice(&0x5F_u16.to_le_bytes());
        config[0x146..0x148].copy_from_slice(&control.to_le_bytes());
        self.write(&format!("{PCI}/{pci}/config"), &config);
    }

    /// Sets the control register of the capability of PCI Express. Another capability precedes this capability.
    fn settings(&self, pci: &str, control: &str) {
        let control = u16::from_str_radix(control.trim_start_matches("0x"), 16).unwrap();
        let mut config = vec![0; 256];
        config[0x34] = 0x40;
        config[0x40..0x42].copy_from_slice(&0x5001_u16.to_le_bytes());
        config[0x50..0x54].copy_from_slice(&0x0002_0010_u32.to_le_bytes());
        config[0x58..0x5A].copy_from_slice(&control.to_le_bytes());
        self.write(&format!("{PCI}/{pci}/config"), &config);
    }

    fn iommu(&self, pci: &str, kind: &str) {
        let group = format!("/sys/kernel/iommu_groups/{pci}");
        self.put(&format!("{group}/type"), kind);
        self.lead(&format!("{PCI}/{pci}/iommu_group"), &self.at(&group));
    }

    fn drive(&self, pci: &str, driver: &str) {
        let place = format!("/sys/bus/pci/drivers/{driver}");
        self.put(&format!("{place}/uevent"), "");
        self.lead(&format!("{PCI}/{pci}/driver"), &self.at(&place));
    }

    // ---- GPUs and RDMA devices ----

    fn gpu(&self, path: &str, node: &str, product: &str) {
        let pci = path.rsplit('/').next().unwrap();
        self.pci(path, "0x10de", "0x030200", node);
        self.drive(pci, "nvidia");
        self.put(&format!("{PCI}/{pci}/device"), product);
        self.bar1(pci, 131_072, 131_072);
    }

    /// Sets the size of BAR1. If the BAR can be resized, also sets the largest possible size.
    fn bar1(&self, pci: &str, mib: u64, largest: u64) {
        let first = 0x3800_0000_0000_u64;
        let window = format!("0x{first:016x} 0x{:016x} 0x0", first + (mib << 20) - 1);
        let registers = "0x00000000d0000000 0x00000000d0ffffff 0x0";
        self.put(&format!("{PCI}/{pci}/resource"), &format!("{registers}\n{window}"));
        self.gone(&format!("{PCI}/{pci}/resource1_resize"));
        if largest > 0 {
            self.put(&format!("{PCI}/{pci}/resource1_resize"), &format!("{:016x}", largest * 2 - 64));
        }
    }

    fn nic(&self, name: &str, path: &str, node: &str, layer: &str) {
        let (pci, place) = (path.rsplit('/').next().unwrap(), format!("/sys/class/infiniband/{name}"));
        self.no_card(name, pci);
        self.pci(path, "0x15b3", "0x020700", node);
        self.drive(pci, "mlx5_core");
        self.lead(&format!("{place}/device"), Path::new(&format!("../../../bus/pci/devices/{pci}")));
        self.settings(pci, "2930");
        self.put(&format!("{place}/node_type"), "1: CA");
        self.put(&format!("{place}/fw_ver"), "28.39.1002");
        self.put(&format!("{place}/board_id"), "MT_0000000838");
        self.port(name, "1", "ACTIVE", "LinkUp", layer);
        let number = name.rsplit('_').next().unwrap();
        for file in [format!("/dev/infiniband/uverbs{number}"), "/dev/infiniband/rdma_cm".to_owned()] {
            self.put(&file, "");
            fs::set_permissions(self.at(&file), fs::Permissions::from_mode(0o666)).unwrap();
        }
    }

    /// Removes the RDMA device's earlier card, if the device now gets another card.
    fn no_card(&self, name: &str, pci: &str) {
        let link = self.root.join(format!("sys/class/infiniband/{name}/device"));
        let Ok(target) = fs::read_link(link) else { return };
        let earlier = target.file_name().unwrap().to_str().unwrap();
        if earlier != pci {
            self.gone(&format!("{PCI}/{earlier}"));
        }
    }

    fn port(&self, nic: &str, number: &str, state: &str, physical: &str, layer: &str) {
        let place = format!("/sys/class/infiniband/{nic}/ports/{number}");
        let numbered = |name: &str| STATES.iter().find(|text| &text[3..] == name).copied().expect("a state of a port");
        self.put(&format!("{place}/state"), numbered(state));
        self.put(&format!("{place}/phys_state"), numbered(physical));
        self.put(&format!("{place}/rate"), "400 Gb/sec (4X NDR)");
        self.put(&format!("{place}/link_layer"), layer);
        for (index, gid) in GIDS.iter().enumerate() {
            self.put(&format!("{place}/gids/{index}"), gid);
            let version = if index % 2 == 1 { "RoCE v2" } else { "IB/RoCE v1" };
            self.put(&format!("{place}/gid_attrs/types/{index}"), version);
        }
    }

    fn no_devices(&self) {
        for path in ["/sys/devices", PCI, "/sys/class/infiniband", "/dev/infiniband"] {
            self.gone(path);
        }
    }

    /// Moves the RDMA device to another root complex, on a node.
    fn far(&self, node: &str) {
        self.bridges(node, &["pci0000:80/0000:80:01.0"]);
        self.nic("mlx5_0", "pci0000:80/0000:80:01.0/0000:81:00.0", node, "InfiniBand");
    }

    /// Replaces all devices. The machine then has eight GPUs and, below the switch of each GPU, an RDMA device. It also
    /// has four RDMA devices without a switch. Each of two nodes has half of the devices.
    fn many_devices(&self) {
        self.no_devices();
        self.put("/sys/devices/system/node/online", "0-1");
        for i in 1..=8 {
            let node = if i > 4 { "1" } else { "0" };
            let port = format!("pci0000:{i}0/0000:{i}0:01.0");
            let switch = format!("{port}/0000:{i}1:00.0");
            let [left, right] = ["00.0", "01.0"].map(|end| format!("{switch}/0000:{i}2:{end}"));
            self.bridges(node, &[&port, &switch, &left, &right]);
            self.gpu(&format!("{left}/0000:{i}3:00.0"), node, "0x2330");
            self.nic(&format!("mlx5_{}", i + 1), &format!("{right}/0000:{i}4:00.0"), node, "InfiniBand");
        }
        for (nic, bus, node) in [(0, 0, "0"), (1, 1, "0"), (10, 4, "1"), (11, 5, "1")] {
            let port = format!("pci0000:a{bus}/0000:a{bus}:01.0");
            self.bridges(node, &[&port]);
            self.nic(&format!("mlx5_{nic}"), &format!("{port}/0000:b{bus}:00.0"), node, "InfiniBand");
        }
    }

    /// Changes the machine to arm64. Its GPU is behind `NVLink-C2C`, and the GPU's BAR does not contain the GPU's
    /// memory. Its RDMA device is at another root complex.
    fn grace(&self, product: &str) {
        self.no_devices();
        self.put("/proc/sys/kernel/arch", "aarch64");
        self.put("/sys/devices/system/node/online", "0-8");
        self.bridges("0", &["pci0009:00/0009:00:00.0", "pci0000:00/0000:00:00.0"]);
        self.gpu("pci0009:00/0009:00:00.0/0009:01:00.0", "0", product);
        self.bar1("0009:01:00.0", 64, 0);
        self.nic("mlx5_0", "pci0000:00/0000:00:00.0/0000:01:00.0", "0", "InfiniBand");
    }

    // ---- processes ----

    /// Adds a process with the given number of KiB pinned, and with these device files open. It has 64 MiB of memory.
    fn process(&self, process: &str, command: &str, pinned: &str, files: &[&str]) {
        let place = format!("/proc/{process}");
        self.put(&format!("{place}/comm"), command);
        let status = format!("Name:\t{command}\nTgid:\t{process}\nPid:\t{process}\nNSpid:\t{process}");
        self.put(&format!("{place}/status"), &format!("{status}\nVmPin:\t{pinned} kB\nVmRSS:\t65536 kB"));
        for (number, file) in files.iter().enumerate() {
            self.lead(&format!("{place}/fd/{}", number + 3), Path::new(&format!("/dev/{file}")));
        }
    }

    /// Writes the variable of the firmware about secure boot, which has four bytes of attributes and then the value.
    fn secure_boot(&self, on: &str) {
        let variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
        self.write(variable, &[6, 0, 0, 0, on.parse().unwrap()]);
    }
}
