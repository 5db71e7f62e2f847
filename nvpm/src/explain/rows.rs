// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tests of all rows of the tables: a line is made of each message's own format, and the tables of any program are
//! tried by their products.
use crate::explain::answer::{Answer, Kind};
use crate::explain::judge::{Verdict, judged};
use crate::explain::known::Known;
use crate::explain::pattern::expression;
use crate::explain::placeholder::{Piece, pieces};
use crate::explain::scan::Scan;
use crate::explain::table::{FORMATS, MESSAGES};

/// The conversions of printf, fmt, Go and shells, each of which stands for a value.
const CONVERSION: &str = r"%[-+ #0]*[\d*]*(?:\.[\d*]*)?(?:hh|h|ll|l|z|t|j|q|L)?([a-zA-Z])|\{[^{}\s]*\}|\$\{[^{}]*\}|\$\([^()]*\)|\$[A-Za-z_]\w*|\$[0-9@*]";

fn value(conversion: Option<&[u8]>) -> &'static [u8] {
    match conversion {
        Some(b"d" | b"i" | b"u") => b"7",
        Some(b"x" | b"X" | b"p") => b"0x7f00",
        Some(b"c") => b"c",
        Some(b"f" | b"g") => b"7.0",
        _ => b"mlx5_0",
    }
}

/// Returns a line that a program would print with this format.
fn line_of(format: &str) -> String {
    let conversion = expression(CONVERSION).unwrap();
    let line = conversion.replace_all(format.as_bytes(), |found: &regex::bytes::Captures| {
        value(found.get(1).map(|letter| letter.as_bytes())).to_vec()
    });
    String::from_utf8_lossy(&line).into_owned()
}

/// Returns a line made from the text of a row.
fn line_of_text(text: &str) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Any => " mlx5_0 ".to_owned(),
        Piece::Word => "mlx5_0".to_owned(),
        Piece::Number => "7".to_owned(),
        Piece::Named("module") => "ib_ipoib".to_owned(),
        Piece::Named("symbol") => "ib_register_client".to_owned(),
        Piece::Named("library") => "libibverbs.so.1".to_owned(),
        Piece::Named("component") => "libfabric".to_owned(),
        Piece::Named(_) => "ibv_reg_mr".to_owned(),
        Piece::Choice(choices) => choices[0].clone(),
    };
    pieces(text).iter().map(piece).collect()
}

/// Returns whether a message is found in a line, or a longer message in its place.
fn is_found(known: &Known, message: usize, line: &str) -> bool {
    known.candidates(line).messages.contains(&message) && known.range(message, line).is_some()
}

#[test]
fn each_row_knows_its_own_text() {
    let known = Known::new();
    let unknown: Vec<&str> = MESSAGES
        .iter()
        .enumerate()
        .filter(|(number, row)| !is_found(&known, *number, &line_of_text(row.text)))
        .map(|(_, row)| row.text)
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// Three rows of ten are about certain values of a format, as the number of an Xid or the name of a module, or about a
/// line that a program joins of several texts. These are tried by their text alone.
#[test]
fn most_rows_know_their_own_format() {
    let known = Known::new();
    let unknown: Vec<(&str, String)> = FORMATS
        .iter()
        .map(|(number, format)| (*number, line_of(format)))
        .filter(|(number, line)| !is_found(&known, *number, line))
        .map(|(number, line)| (MESSAGES[number].text, line))
        .collect();
    assert!(unknown.len() * 10 < FORMATS.len() * 3, "{} of {}: {unknown:#?}", unknown.len(), FORMATS.len());
}

pub fn verdict(log: &str) -> (Verdict, Kind) {
    let mut scan = Scan::new();
    scan.read("log", log.as_bytes()).unwrap();
    let verdict = judged(&scan);
    let kind = Answer { scan: &scan, verdict: &verdict, node: None }.kind();
    (verdict, kind)
}

pub fn first_cause(log: &str) -> &'static str {
    let (verdict, kind) = verdict(log);
    let first = verdict.causes.first().filter(|_| kind == Kind::Cause);
    first.map_or("", |first| first.about().key)
}

const MODULES: &[&str] = &[
    "ib_ipoib",
    "ib_isert",
    "ib_srp",
    "ib_srpt",
    "ib_umad",
    "ib_cm",
    "ib_uverbs",
    "iw_cm",
    "iw_cxgb4",
    "rdma_cm",
    "rdma_ucm",
    "siw",
    "mlx5_ib",
    "mlx4_ib",
    "bnxt_re",
    "irdma",
    "efa",
    "qedr",
    "erdma",
    "hns_roce_hw_v2",
    "nvme_rdma",
    "nvmet_rdma",
    "ko2iblnd",
    "rpcrdma",
    "smc",
    "cifs",
    "knem",
    "xpmem",
    "beegfs",
    "hfi1",
];

#[test]
fn each_module_has_a_cause_for_each_error_of_the_kernel() {
    let expected = |module: &str| match module {
        "efa" => "efa_other_core",
        "ib_isert" | "ib_srp" | "ib_srpt" | "nvme_rdma" | "nvmet_rdma" | "ko2iblnd" | "rpcrdma" | "smc" | "cifs"
        | "knem" | "xpmem" | "beegfs" => "storage_stack",
        _ => "mixed_ofed",
    };
    for module in MODULES {
        for line in [
            format!("{module}: disagrees about version of symbol ib_register_client"),
            format!("{module}: Unknown symbol rdma_create_id (err -2)"),
        ] {
            // A row of a program may know more about the program's own module.
            let cause = first_cause(&line);
            assert!(cause == expected(module) || cause == "mixed_ofed" || cause == "efa_other_core", "{line}: {cause}");
        }
        let insert = format!("modprobe: ERROR: could not insert '{module}':");
        assert_eq!(first_cause(&format!("{insert} Key was rejected by service")), "signature", "{module}");
        assert_eq!(first_cause(&format!("{insert} Required key not available")), "signature", "{module}");
        assert_eq!(first_cause(&format!("{insert} Exec format error")), "other_kernel", "{module}");
        let magic = format!("{module}: version magic '6.8.0-59-generic SMP' should be '6.8.0-60-generic SMP'");
        assert_eq!(first_cause(&magic), "other_kernel", "{module}");
    }
}

#[test]
fn the_symbol_decides_and_not_the_module() {
    assert_eq!(first_cause("nvme_rdma: disagrees about version of symbol nvme_init_ctrl_finish"), "storage_stack");
    assert_eq!(first_cause("xpmem: Unknown symbol nvidia_p2p_get_pages (err -2)"), "no_nvidia");
    assert_eq!(first_cause("rdma_rxe: Unknown symbol crc32c (err -2)"), "kernel_part");
}

#[test]
fn each_verb_has_a_cause_for_common_errors() {
    for verb in [
        "ibv_alloc_pd",
        "ibv_create_cq",
        "ibv_create_qp",
        "ibv_create_srq",
        "ibv_create_comp_channel",
        "mlx5dv_create_qp",
        "mlx5dv_devx_obj_create",
        "mlx5dv_devx_umem_reg",
        "mlx5dv_devx_create_event_channel",
        "ibv_reg_mr",
        "ibv_reg_mr_iova2",
    ] {
        assert_eq!(first_cause(&format!("{verb} failed: Cannot allocate memory")), "memlock", "{verb}");
    }
    for (line, cause) in [
        ("ibv_open_device failed: Permission denied", "device_denied"),
        ("ibv_query_gid failed: No such file or directory", "gid"),
        ("ibv_query_port failed: Input/output error", "nic_lost"),
        ("ibv_create_qp failed: Operation not permitted", "memlock"),
        ("mlx5dv_devx_general_cmd failed: Operation not supported", "devx"),
        ("rdma_connect failed: Connection refused", "cm_peer"),
        ("rdma_resolve_route: No such device", "cm_address"),
        ("ibv_reg_dmabuf_mr failed, gpu memory: Operation not supported", "no_dmabuf"),
    ] {
        assert_eq!(first_cause(line), cause, "{line}");
    }
}

#[test]
fn each_missing_library_has_a_cause() {
    for (library, cause) in [
        ("libibverbs.so.1", "no_library"),
        ("libmlx5.so.1", "no_library"),
        ("libcuda.so.1", "no_libcuda"),
        ("libucp.so.0", "no_library"),
        ("libfabric.so.1", "no_library"),
        ("libnvshmem_host.so.3", "no_library"),
    ] {
        let line = format!("error while loading shared libraries: {library}: cannot open shared object file");
        assert_eq!(first_cause(&line), cause, "{line}");
        assert_eq!(first_cause(&format!("\t{library} => not found")), cause, "{library}");
    }
}

#[test]
fn a_log_without_a_sign_of_success_is_no_all_clear() {
    for log in ["all is well", "step 12 loss 3.1", "mlx5_core 0000:3b:00.0: firmware version: 28.43.2026", ""] {
        let (_, kind) = verdict(log);
        assert_eq!(kind, Kind::Unknown, "{log}");
    }
    let (_, kind) = verdict("NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA");
    assert_eq!(kind, Kind::Nothing);
}

/// The formats of all versions of NCCL from 2.4 to 2.29.
#[test]
fn routine_notices_are_no_failures_and_no_success() {
    let nccl = [
        "No plugin found (libnccl-net.so), using internal implementation",
        "No plugin found, using internal implementation",
        "Could not find: libnccl-x.so libnccl-y.so. Using internal plugin.",
        "Could not find: libnccl-x.so",
        "Plugin load returned 2 : libnccl-x.so: cannot open shared object file: No such file or directory.",
        "Plugin load (libnccl-x.so) returned 2 : libnccl-x.so: cannot open shared object file: No such file or directory",
        "dlerror=libnccl-x.so: cannot open shared object file: No such file or directory No plugin found (libnccl-x.so), using internal implementation",
        "Failed to find ncclXPlugin_v8 symbol.",
        "Failed to find ncclXPlugin symbol (>= v5). ncclXPlugin symbols v4 and lower are not supported.",
        "Failed to find ncclXPlugin_v2 symbol, using internal tuner instead.",
        "failed to find ncclProfiler_v3",
    ];
    let part = |part: &str| nccl.map(|text| format!("node-a:1:2 [0] NCCL INFO {part}/Plugin : {text}"));
    let others = [
        "TUNER: no plugin found 'libnccl-tuner.so', using default tuner instead.",
        "parser.c:2036 UCX  WARN  unused environment variable: UCX_HOME (maybe: UCX_TLS?)",
        "libfabric:10:1700000000::core:core:ofi_hmem_init():418<info> Failed to initialize hmem iface FI_HMEM_ROCR: No data available",
        "[node-a:100] mca: base: components_open: component openib not found, skipping",
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    ];
    let lines = ["NET", "TUNER", "PROFILER", "ENV"].into_iter().flat_map(part).chain(others.map(str::to_owned));
    for line in lines {
        let log = format!("{line}\nNET/OFI Selected provider is efa");
        let (found, kind) = verdict(&log);
        assert!(found.causes.is_empty() && kind == Kind::Unknown, "{line}: {kind:?}");
        let mut scan = Scan::new();
        scan.read("log", log.as_bytes()).unwrap();
        let answer = Answer { scan: &scan, verdict: &found, node: None };
        assert!(answer.unknown().is_empty(), "{line}");
    }
}

/// A library that the plug-in needs is no routine.
#[test]
fn a_plug_in_that_lacks_a_library_is_a_failure() {
    let line = "NCCL INFO NET/Plugin: libfabric.so.1: cannot open shared object file: No such file or directory";
    assert_eq!(first_cause(line), "no_library");
}

#[test]
fn a_quotation_is_no_failure() {
    for log in [
        "$ grep -c \"Call to ibv_modify_qp failed with error No such device\" rank0.log\n0",
        "# if you see \"ibv_reg_mr failed: Cannot allocate memory\" raise ulimit -l\nunlimited\nOK",
        "The check for nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client passed (0 lines found)",
    ] {
        let (found, kind) = verdict(log);
        assert!(found.causes.is_empty() && kind == Kind::Unknown, "{log}: {kind:?}");
    }
}

#[test]
fn a_failure_that_was_overcome_is_none() {
    for log in [
        "modprobe: FATAL: Module nv_peer_mem not found in directory /lib/modules/6.8.0-60-generic\n\
         modprobe nvidia_peermem\nnvidia_peermem loaded, all tests passed",
        "attempt 1: ibv_open_device failed, retrying\nattempt 2: ibv_open_device ok\nall tests passed, 0 failed",
        "waiting for mellanox ofed and nvidia drivers to be installed\n\
         successfully loaded nvidia-peermem module, now waiting for signal",
        "E0101 00:00:00.000000 1 retry.go:12] attempt 1 failed, retrying in 1s: connection refused\n\
         I0101 00:00:01.000000 1 retry.go:20] attempt 2 succeeded, connected to etcd",
    ] {
        let (found, kind) = verdict(log);
        assert!(found.causes.is_empty() && kind == Kind::Nothing, "{log}: {kind:?}");
    }
}

#[test]
fn another_success_takes_no_failure_back() {
    let failed = "ibv_reg_mr of GPU memory failed: Bad address (cuda)";
    for success in [
        "ibv_reg_mr of host memory ok",
        "GPU test passed through host memory, fallback ok",
        "the plug-in was loaded",
        "nvidia_peermem must be loaded",
        "if nvidia_peermem is loaded, ibv_reg_mr of GPU memory passed",
    ] {
        assert_eq!(first_cause(&format!("{failed}\n{success}")), "no_client", "{success}");
        assert_eq!(first_cause(&format!("{success}\n{failed}")), "no_client", "{success}");
    }
    let other_host = "a1:1:1 [0] NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory\n\
                      b1:1:1 [0] NCCL INFO ibv_create_qp ok";
    assert_eq!(first_cause(other_host), "memlock");
    let again = "ibv_create_qp failed: Cannot allocate memory\nibv_create_qp ok\n\
                 ibv_create_qp failed: Cannot allocate memory";
    assert_eq!(first_cause(again), "memlock");
    let other_device = "mlx5_0: ibv_create_qp failed: Cannot allocate memory\nmlx5_1: ibv_create_qp ok";
    assert_eq!(first_cause(other_device), "memlock");
}

#[test]
fn a_failure_is_never_an_all_clear() {
    for line in [
        "mlx5_core: version magic '6.8.0-59' should be '6.8.0-60'",
        "some_tool: couldn't do that",
        "Traceback (most recent call last):",
        "process exited with code 3",
        "network renewal timed out",
        "libstrange.so.1 => not found",
    ] {
        let (_, kind) = verdict(&format!("NCCL INFO Using network IB\n{line}\nDMA-BUF is available on GPU device 0"));
        assert_ne!(kind, Kind::Nothing, "{line}");
    }
}

#[test]
fn a_probable_cause_below_an_unknown_failure_is_only_possible() {
    let cause = "ibv_create_cq failed: No space left on device";
    assert_eq!(first_cause(cause), "nic_limit");
    let (verdict, kind) = verdict(&format!("mlx5_9: strange failure of the card\n{cause}"));
    assert_eq!((kind, verdict.causes[0].about().key), (Kind::Perhaps, "nic_limit"));
}

#[test]
fn the_reason_of_the_package_comes_before_the_missing_module() {
    let log = "nv_peer_mem: not loaded: on boot it is not wanted: /etc/infiniband/nv_peer_mem.conf says ONBOOT=no\n\
               ibv_reg_mr of GPU memory failed: Bad address (cuda)";
    assert_eq!(first_cause(log), "service-boot-not-wanted");
    let (_, kind) = verdict(log.lines().next().unwrap());
    assert_eq!(kind, Kind::Nothing);
}
