// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tests of rules that hold for any name in a line: the prefix of a symbol, the error of a module, the error of a
//! probe.
use crate::explain::answer::{Answer, Kind};
use crate::explain::judge::judged;
use crate::explain::rows::{first_cause, verdict};
use crate::explain::scan::Scan;
use crate::explain::screen::Screen;
use crate::explain::table::{CAUSES, MESSAGES, Sure};

/// Returns the answer for people.
fn said(log: &str) -> String {
    let mut scan = Scan::new();
    scan.read("log", log.as_bytes()).unwrap();
    let verdict = judged(&scan);
    Screen::new(&Answer { scan: &scan, verdict: &verdict, node: None }, 200, &str::to_owned).brief().join("\n")
}

#[test]
fn the_prefix_of_a_symbol_names_the_library() {
    let cases = [
        ("ibv_query_device_ex", "no_provider"),
        ("_ibv_query_gid_ex", "no_provider"),
        ("rdma_establish", "no_provider"),
        ("mlx5dv_reg_dmabuf_mr", "no_provider"),
        ("efadv_query_mr", "no_provider"),
        ("fi_getinfo", "other_library"),
        ("uct_md_mem_query", "other_ucx"),
        ("ucp_worker_create", "other_ucx"),
        ("ncclCommWindowRegister", "other_library"),
        ("nvshmemx_init_status", "other_library"),
        ("gdr_pin_buffer_v2", "other_library"),
        ("MPI_Session_init", "other_library"),
        ("cudaGraphAddNode_v2", "other_library"),
        ("cuMemGetHandleForAddressRange", "other_library"),
        ("_ZN4nixl5agentC1Ev", "other_library"),
    ];
    // The file that asks does not decide.
    for asks in ["/usr/lib/libuct_ib.so.0", "/opt/libnccl-net.so", "/usr/lib/libfabric.so.1", "/usr/bin/app"] {
        for (symbol, cause) in cases {
            for line in [
                format!("app: symbol lookup error: {asks}: undefined symbol: {symbol}, version X_1.1"),
                format!("OSError: {asks}: undefined symbol: {symbol}"),
                format!("{asks}: undefined reference to `{symbol}'"),
            ] {
                assert_eq!(first_cause(&line), cause, "{line}");
            }
        }
    }
    for (version, cause) in
        [("IBVERBS_PRIVATE_34", "no_provider"), ("MLX5_1.24", "no_provider"), ("FABRIC_1.8", "other_library")]
    {
        let line = format!("ImportError: /usr/lib/liba.so: version `{version}' not found (required by /usr/lib/b.so)");
        assert_eq!(first_cause(&line), cause, "{line}");
    }
    assert_eq!(first_cause("python3: symbol lookup error: /x.so: undefined symbol: png_set_longjmp_fn"), "");
}

#[test]
fn the_kernels_symbol_decides_for_any_module() {
    for module in ["ceph", "libceph", "fwctl", "gpfs", "mgc", "wekafsio", "vastnfs", "any_vendor"] {
        for symbol in ["ib_create_cq_user", "rdma_create_id", "__ib_alloc_pd", "mlx5_core_create_mkey"] {
            let line = format!("{module}: disagrees about version of symbol {symbol}");
            assert_eq!(first_cause(&line), "mixed_ofed", "{line}");
            assert_eq!(first_cause(&format!("{module}: Unknown symbol {symbol} (err -22)")), "mixed_ofed", "{module}");
        }
        let line = format!("{module}: disagrees about version of symbol nvidia_p2p_get_pages");
        assert_eq!(first_cause(&line), "driver_replaced");
        assert_eq!(
            first_cause(&format!("{module}: disagrees about version of symbol nvme_alloc_request")),
            "storage_stack"
        );
        assert_eq!(first_cause(&format!("{module}: disagrees about version of symbol kmalloc_order")), "");
        let insert = format!("modprobe: ERROR: could not insert '{module}':");
        assert_eq!(first_cause(&format!("{insert} Key was rejected by service")), "signature");
    }
}

#[test]
fn modprobe_has_a_cause_for_each_error_of_each_module() {
    for module in ["erdma", "mana_ib", "irdma", "bnxt_re", "mlx5_ib", "nvidia_fs", "rdma_rxe", "nvme_rdma"] {
        for error in ["No such device", "Cannot allocate memory", "Device or resource busy", "File exists"] {
            let line = format!("modprobe: ERROR: could not insert '{module}': {error}");
            assert_ne!(first_cause(&line), "", "{line}");
        }
    }
    assert_eq!(first_cause("modprobe: FATAL: Module kvm_intel not found in directory /lib/modules/6.8.0"), "");
}

#[test]
fn a_probe_that_failed_says_no_more_than_its_error() {
    for driver in ["mlx5_core", "mlx5_ib.rdma", "efa", "irdma", "bnxt_re", "erdma"] {
        for (error, cause) in
            [(-110, "nic_lost"), (-5, "nic_lost"), (-12, "module_error"), (-19, "module_error"), (-22, "")]
        {
            assert_eq!(
                first_cause(&format!("{driver}: probe of 0000:00:1d.0 failed with error {error}")),
                cause,
                "{driver}"
            );
            let line = format!("{driver} 0000:00:1d.0: probe with driver {driver} failed with error {error}");
            assert_eq!(first_cause(&line), cause, "{line}");
        }
    }
    let (_, kind) = verdict("rdma_cm: Unable to modify QP to RTR, error -22");
    assert_eq!(kind, Kind::Unknown);
}

#[test]
fn a_refused_version_is_a_cause_in_any_words() {
    for line in [
        "NET/OFI aws-ofi-nccl requires libfabric >= 1.22, found 1.18",
        "ERROR: this plugin requires NCCL version 2.19 or later",
        "nvshmem: incompatible gdrcopy version 2.3",
        "libibverbs: driver ABI is too old for rdma-core 50",
        "UCX version mismatch: built with 1.18, running 1.15",
        "NCCL plugin v4 is not compatible with this version",
    ] {
        assert_eq!(first_cause(line), "other_library", "{line}");
    }
    for line in ["numpy 2.1 is incompatible with numba 0.58", "The driver is loaded", "requires python >= 3.8"] {
        assert_eq!(first_cause(line), "", "{line}");
    }
}

#[test]
fn the_first_command_helps_where_the_log_was_written() {
    let docker = "root@1f2e3d4c5b6a:/workspace# ls\n";
    let pod = "/var/run/secrets/kubernetes.io/serviceaccount\n";
    for (log, expected) in [
        ("insmod: ERROR: could not insert module nv_peer_mem.ko: Key was rejected by service", "mokutil --sb-state"),
        ("ImportError: libibverbs.so.1: cannot open shared object file", "ldconfig -p | grep libibverbs.so.1"),
        ("\tlibmlx5.so.1 => not found", "ldconfig -p | grep libmlx5.so.1"),
        (
            "NCCL WARN NET/IB : Got completion from peer 192.0.2.5<38560> with error 12, opcode 0, len 0, vendor err 129",
            "show_gids",
        ),
        ("Error: Unable to find a match: kernel-devel-5.14.0-427.el9.x86_64", "dnf list --showduplicates kernel-devel"),
        ("nvfs-core.c:120:3: error: implicit declaration of function vm_flags_set", "uname -r"),
    ] {
        assert!(said(log).contains(&format!("First: {expected}\n")), "{}", said(log));
    }
    for container in [docker, pod] {
        let log =
            format!("{container}insmod: ERROR: could not insert module nv_peer_mem.ko: Key was rejected by service");
        assert!(said(&log).contains("First: mokutil --sb-state (on the node)\n"), "{}", said(&log));
    }
    for log in [
        "/usr/bin/ld: cannot find -libverbs",
        "configure: error: libibverbs header files not found",
        "E: Unable to locate package doca-ofed",
        "0/3 nodes are available: 3 Insufficient rdma/hca_shared_devices_a.",
    ] {
        assert!(!said(log).contains("First:"), "{}", said(log));
    }
}

#[test]
fn a_hedged_answer_says_what_to_do() {
    let text = said("irdma: probe of ice.roce.0 failed with error -22");
    assert!(
        text.contains("what it was elsewhere:") && text.contains("\nTo do: The first line of this driver"),
        "{text}"
    );
}

#[test]
fn a_text_does_not_say_what_the_line_has() {
    let line = "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, \
                local GID fe80::1, remote GID fe80::2";
    assert_eq!(first_cause(line), "gid");
    assert!(!said(line).contains("prints both GIDs"));
    assert!(!said("modprobe: FATAL: Module nv_peer_mem not found in directory /lib/modules/6.8.0").contains("(how)"));
}

#[test]
fn hardware_that_has_no_gpudirect_is_the_cause_in_any_program() {
    for (machine, cause) in [
        ("GPU 0: NVIDIA GeForce RTX 4090", "geforce"),
        ("Model: NVIDIA DGX Spark, GB10", "no_peer_on_soc"),
        ("Model: NVIDIA Jetson AGX Orin", "no_peer_on_soc"),
        ("hl-smi: Habana Gaudi2", "other_gpu"),
        ("amdgpu: AMD Instinct MI300X", "amd"),
    ] {
        for failure in [
            "ibv_reg_mr of GPU memory failed: Bad address (cuda)",
            "ibv_reg_mr(gpu buffer) failed with errno 22",
            "tool: failed to register GPU memory: Invalid argument",
            "tool: failed to register GPU memory",
            "ibv_reg_dmabuf_mr of GPU memory failed: Operation not supported",
            "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address",
            "Failed to register memory 0x7f00: Bad address [14]",
        ] {
            assert_eq!(first_cause(&format!("{machine}\n{failure}")), cause, "{machine}: {failure}");
        }
    }
    let mixed = "GPU 0: NVIDIA GeForce RTX 4090\nGPU 1: NVIDIA H100\nibv_reg_mr of GPU memory failed: Bad address";
    assert_ne!(first_cause(mixed), "no_peer_on_soc");
}

#[test]
fn a_routine_line_never_outranks_a_failure() {
    let notice = "NCCL INFO NET/Plugin: Could not find: libnccl-net.so\nNCCL INFO Using network Socket\nEFA device";
    assert_eq!(first_cause(notice), "no_plugin");
    let failure = "libfabric.so.1: undefined symbol: efadv_query_mr";
    assert_eq!(first_cause(&format!("{notice}\n{failure}")), "no_provider");
}

/// Only a text that says the cause, or a public thread, makes a cause certain.
#[test]
fn a_list_of_cases_makes_no_message_certain() {
    let (found, _) = verdict(
        "max locked memory (kbytes, -l) 64\nNCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory",
    );
    assert_eq!((found.causes[0].about().key, found.causes[0].sure()), ("memlock", Sure::Probable));
    let (found, _) = verdict("modprobe: ERROR: could not insert 'irdma': Key was rejected by service");
    assert_eq!((found.causes[0].about().key, found.causes[0].sure()), ("signature", Sure::Certain));
}

#[test]
fn a_program_and_the_kernel_know_more_than_the_error_of_a_verb() {
    let kernel = "mlx5_core 0000:03:00.0: mlx5_cmd_check:824:(pid 42): CREATE_QP(0x500) op_mod(0x0) failed, status no \
                  resources(0xf), syndrome (0x123456)";
    assert_eq!(first_cause(&format!("job 7: ibv_create_qp: Cannot allocate memory\n{kernel}")), "nic_limit");
    assert_eq!(first_cause("job 7: ibv_create_qp: Cannot allocate memory"), "memlock");
}

#[test]
fn the_reason_of_the_loader_stands_before_the_notice() {
    let reason = "libefa.so.1: version `EFA_1.9' not found";
    for line in [
        format!("NCCL INFO NET/Plugin: libnccl-net-x.so: {reason}. No plugin found, using internal implementation"),
        format!(
            "NCCL INFO NET/Plugin : dlerror={reason} (required by /x/y.so) No plugin found (libnccl-net.so), using"
        ),
        "NCCL INFO NET/Plugin: /x/y.so: undefined symbol: ibv_query_gid_ex. No plugin found (libnccl-net.so)"
            .to_owned(),
    ] {
        assert_eq!(first_cause(&line), "no_provider", "{line}");
    }
    let other = "NCCL INFO NET/Plugin: /x/y.so: undefined symbol: ncclNetPlugin_v9. No plugin found, using internal";
    assert_eq!(first_cause(other), "");
}

#[test]
fn a_refused_dma_buf_alone_has_several_causes() {
    let refused = "mpi: ibv_reg_dmabuf_mr(len=64): Invalid argument";
    assert_eq!(first_cause(refused), "");
    assert_eq!(first_cause(&format!("alloc: cuMemCreate\n{refused}")), "dmabuf_range");
}

#[test]
fn dkms_has_a_cause_for_modules_of_the_topic_only() {
    let headers = "Error! Your kernel headers for kernel 6.1.0 cannot be found.";
    for (log, cause) in [
        (format!("dkms: v4l2loopback: {headers}"), ""),
        (format!("Autoinstall of module zfs/2.2.2 for kernel 6.1.0\n{headers}"), ""),
        (format!("dkms: knem: {headers}"), "no_headers"),
        (format!("Loading new nvidia-550.54 DKMS files...\n{headers}"), "no_headers"),
        (
            format!("Loading new vboxhost-7.0 DKMS files...\nLoading new nvidia-550.54 DKMS files...\n{headers}"),
            "no_headers",
        ),
        (headers.to_owned(), "no_headers"),
    ] {
        assert_eq!(first_cause(&log), cause, "{log}");
    }
}

#[test]
fn a_device_that_serves_gpus_lacks_no_module() {
    let channel = "n1:7:8 [0] NCCL INFO Channel 03/0 : 0[0] -> 1[0] [receive] via NET/IBx/2";
    let names = |log: &str| verdict(log).0.causes.iter().map(|one| one.about().key).collect::<Vec<_>>();
    assert!(names(channel).contains(&"no_client"));
    for how in ["DMABUF", "nvidia-peermem"] {
        let log =
            format!("{channel}\nn1:7:9 [0] NCCL INFO NET/IB : GPU Direct RDMA ({how}) enabled for HCA 2 'mlx5_2'");
        assert!(!names(&log).contains(&"no_client"), "{log}");
    }
}

#[test]
fn a_missing_module_names_its_package() {
    let line =
        |module: &str| ["modprobe: FATAL: Module ", module, " not found in directory /lib/modules/6.1.0"].concat();
    for (module, package) in [
        ("erdma", "eRDMA"),
        ("efa", "EFA"),
        ("bnxt_re", "Broadcom"),
        ("irdma", "linux-modules-extra"),
        ("mana_ib", "linux-modules-extra"),
        ("siw", "linux-modules-extra"),
        ("rdma_rxe", "linux-modules-extra"),
    ] {
        let text = said(&line(module));
        let advice = text.split("To do: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
        assert!(advice.contains(package), "{module}: {text}");
        assert!(!advice.contains("OFED"), "{module}: {text}");
        assert_eq!(first_cause(&line(module)), "kernel_part", "{module}");
    }
    for module in ["ib_addr", "ib_mad", "ib_sa", "ib_ucm", "mlx4_vnic", "ib_sdp"] {
        assert_eq!(first_cause(&line(module)), "", "{module}");
    }
    let both = format!("{}\n{}", line("ib_addr"), line("erdma"));
    assert!(said(&both).contains("eRDMA"), "{}", said(&both));
}

#[test]
fn a_geforce_is_the_cause_of_a_refused_request_of_gdrcopy() {
    let gpu = "device 0: NVIDIA GeForce RTX 3090\n";
    for line in [
        "error in gdr_map with code=22",
        "gdr_pin_buffer failed: Invalid argument",
        "gdr_pin_buffer_v2 failed with error 22",
        "gdr_map failed. length :65536 ret:22",
    ] {
        assert_eq!(first_cause(&format!("{gpu}{line}")), "geforce", "{line}");
        assert_ne!(first_cause(&format!("GPU 0: NVIDIA H100\n{line}")), "geforce", "{line}");
    }
    assert_eq!(first_cause(&format!("{gpu}error in gdr_map with code=12")), "");
}

#[test]
fn no_event_channel_means_no_device() {
    assert_eq!(first_cause("myserver: rdma_create_event_channel failed"), "no_device");
    assert_eq!(first_cause("myserver: rdma_create_event_channel failed: Permission denied"), "device_denied");
    assert_eq!(first_cause("UCX DEBUG rdma_create_event_channel failed: No such device"), "");
}

#[test]
fn the_error_may_stand_below_the_request() {
    for (log, cause) in [
        ("Failed to create a completion queue (CQ):\nError:    Cannot allocate memory", "memlock"),
        (
            "Failed to create a completion queue (CQ):\n\nHostname: n1\nRequested CQE: 4096\nError: Cannot allocate memory",
            "memlock",
        ),
        ("Failed to create a queue pair (QP):\n\nHostname: n1\nError: Operation not supported", "not_mlx5"),
        ("QP creation failed: Operation not supported", "not_mlx5"),
        ("CQ allocation failed: Cannot allocate memory", "memlock"),
        ("Failed to create a completion queue (CQ):\nall is well\nError: Cannot allocate memory", ""),
        ("Failed to create a window:\nError: Cannot allocate memory", ""),
    ] {
        assert_eq!(first_cause(log), cause, "{log}");
    }
    assert!(said("Failed to create a queue pair (QP):\nError: Operation not supported").contains("type"));
}

#[test]
fn a_syndrome_is_a_refusal_by_the_firmware() {
    for line in [
        "myapp: CREATE_SRQ (DevX) failed: Remote I/O error (syndrome 0x111111)",
        "other: ALLOC_UAR failed, syndrome 0xabcdef: Remote I/O error",
    ] {
        assert_eq!(first_cause(line), "nic_refused", "{line}");
    }
    assert_eq!(first_cause("myapp: query failed (syndrome 0x0)"), "");
}

#[test]
fn the_name_of_a_completion_status_says_the_same_in_any_program() {
    for (words, cause) in [
        ("nfs: rdma recv completion: local length error", "other_versions"),
        ("app: wc status: remote invalid request error", "other_versions"),
        ("app: completion with IBV_WC_LOC_LEN_ERR failed", "other_versions"),
        ("app: failed completion: IBV_WC_REM_INV_REQ_ERR", "other_versions"),
        ("rpcrdma: frwr completion: transport retry counter exceeded", "network"),
        ("app: failed: WR flushed", ""),
        ("app: failed: RNR retry counter exceeded", ""),
        ("app: rdma completion: local QP operation error", ""),
        ("app: rdma completion: bad response error", ""),
    ] {
        assert_eq!(first_cause(words), cause, "{words}");
    }
    for words in ["app: failed: WR flushed", "app: failed: RNR retry counter exceeded"] {
        assert_eq!(verdict(words).0.follows.len(), 1, "{words}");
    }
    assert!(!verdict("app: rdma completion: local QP operation error").0.causes.is_empty());
}

#[test]
fn the_error_of_a_connection_by_rdma_cm_decides() {
    for (error, cause) in [(-104, "cm_peer"), (-111, "cm_peer"), (-110, "network"), (-113, "cm_address")] {
        for line in [
            format!("nvme nvme2: rdma connect failed: {error}"),
            format!("nvme nvme2: rdma connection establishment failed ({error})"),
        ] {
            assert_eq!(first_cause(&line), cause, "{line}");
        }
    }
    assert_eq!(first_cause("nvme nvme2: rdma connect failed"), "");
}

#[test]
fn an_error_of_the_compiler_below_dkms_means_another_kernel() {
    let line = |module: &str| {
        format!("/var/lib/dkms/{module}/1.1.4/build/main.c:100:5: error: implicit declaration of function 'f'")
    };
    for module in ["knem", "iser", "mlnx-ofed-kernel", "nvidia", "xpmem", "irdma"] {
        assert_eq!(first_cause(&line(module)), "image_defect", "{module}");
    }
    for module in ["v4l2loopback", "zfs"] {
        assert_eq!(first_cause(&line(module)), "", "{module}");
    }
}

#[test]
fn the_provider_of_libfabric_says_why_it_took_no_memory() {
    let line = |name: &str, error: i32| {
        format!("libfabric:9:17::{name}:mr:{name}p_x():1<warn> c0: Failed to pin GPU buffer: {error}")
    };
    for (name, error, cause) in [
        ("cxi", -14, "no_hmem"),
        ("cxi", -12, "memlock"),
        ("cxi", -95, "no_hmem"),
        ("verbs", -12, "memlock"),
        ("cxi", -22, ""),
    ] {
        assert_eq!(first_cause(&line(name, error)), cause, "{name} {error}");
    }
}

#[test]
fn nccl_goes_on_without_sharp() {
    for line in [
        "n1:5:6 [1] NCCL WARN NET/IB : SHARP coll init error: Cannot create SHARP job(-2)",
        "n1:5:6 [1] transport.cc:384 NCCL WARN Cannot initialize CollNet, using point-to-point network instead",
    ] {
        let mut scan = Scan::new();
        scan.read("log", line.as_bytes()).unwrap();
        let verdict = judged(&scan);
        assert!(verdict.causes.is_empty() && scan.unknown().is_empty(), "{line}");
    }
}

#[test]
fn metadata_that_cannot_be_read_is_of_another_version() {
    assert_eq!(first_cause("agent: Deserialization of tag eps failed"), "other_versions");
}

#[test]
fn a_virtual_function_needs_its_guids() {
    let line = r#"kubelet: ib-sriov-cni failed to configure VF "VF ib7 GUID is not valid""#;
    assert!(said(line).contains("node_guid"), "{}", said(line));
}

#[test]
fn advice_contains_no_unfilled_value() {
    let is_open = |text: &str| {
        ["{device}", "{address}", "{module}", "{library}", "{file}"].iter().any(|name| text.contains(name))
    };
    for row in MESSAGES {
        assert!(!is_open(row.note) && !is_open(row.todo), "{}", row.text);
        for case in row.cases {
            assert!(!is_open(case.says) && !is_open(case.todo), "{}", row.text);
        }
    }
    for cause in CAUSES {
        assert!(!is_open(cause.says) && !is_open(cause.todo) && !is_open(cause.tell), "{}", cause.key);
    }
}
