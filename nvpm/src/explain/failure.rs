// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says whether a line looks like a failure. The words are those of failures in general, because the answer may only
//! say that nothing is wrong if no line of the log is a failure of any kind.
use std::sync::OnceLock;

use regex::bytes::Regex;

use crate::explain::pattern::expression;

/// Words of failures in programs, in the kernel, in compilers, and in other languages. These and the following words
/// are compared in small letters, because an expression that takes both cases is slow to make.
const BAD: &str = concat!(
    r"(?:\b(?:error|err|fatal|critical|fail|failed|failing|failure|failures|fails|panic|abort|aborted|aborting)\b)",
    r"|(?:\b(?:cannot|can't|could ?n[o']t|couldn't|could not|unable|refused|rejected|denied|forbidden|timed ?out)\b)",
    r"|(?:\btimeout (?:expired|exceeded|reached|after|waiting)|\b(?:connection|request|operation) timeout\b)",
    r"|(?:\b(?:not (?:found|supported|permitted|available|loaded|implemented|allowed|compatible)|no such|is missing|unsupported)\b)",
    r"|(?:\b(?:unknown symbol|undefined symbol|disagrees about version|exports duplicate symbol|version magic)\b)",
    r"|(?:\b(?:mismatch(?:ed)?|invalid|corrupt(?:ed)?|unreachable|incompatible|too (?:old|new)|out of memory|oom-killer|insufficient)\b)",
    r"|(?:\b(?:requires?|needs?) .{1,60}(?:>=|\bor (?:newer|later|higher|above)\b|\bat least\b))|\bundefined reference to\b",
    r"|\b(?:(?:nccl|ucx) +warn|xid|oops|call trace|assertion|segmentation fault|sig(?:segv|bus|abrt|kill|fpe)|traceback)\b",
    r"|\bbug:|\brip:|(?:\b(?:soft|hard) lockup\b|\bgeneral protection\b|\bblocked for more than \d)",
    r"|(?:\b(?:exit(?:ed)?(?: with)?(?: \w+)?|exit|return)[ -](?:code|status)[ =:]*-?[1-9]|\bexited with -?[1-9])",
    r"|^\[?[ef]\d{4} |\[e\]|\w(?:error|exception)\b|(?:\b(?:link is not ready|carrier lost|link (?:is )?down)\b)",
    r"|\b(?:fehler|erreur) ?:|错误|錯誤|エラー|error ?：",
);
/// Words that a failure has more often than a success. They are shown, and they never make a known cause doubtful.
const DOUBTFUL: &str = concat!(
    r"(?:\bun(?:met|defined|resolved|satisfied|available|usable|expected|expectedly|responsive|handled|recoverable|correctable)\b)",
    r"|(?:\b(?:conflicts?|panicked|died|dead|deadlock|killed|stalled|stalls?|stuck|hangs?|hung|crash(?:ed|es)?|terminated?)\b)",
    r"|(?:\b(?:giving up|gave up|dropped|lost|closed|gone|overruns?|overflow|exceeded|exhausted|expired|exceeds)\b)",
    r"|(?:\b(?:garbage|corruption|wrong|incorrect|inconsistent|illegal|violations?|broken|bad|degraded)\b)",
    r"|(?:\b(?:disconnected|interrupted|cancell?ed|reset by|refuses?|rejects?|limit reached|however:$|went (?:down|away))\b)",
    r"|(?:\bnot (?:pinned|configured|active|responding|ready|connected|initiali[sz]ed|reachable|usable|registered|running)\b)",
    r"|(?:\b(?:is not|not yet) (?:installed|enabled|valid|complete|mounted)\b|; however:$|\bnothing provides\b)",
    r"|(?:\bdid(?: not|n't)\b|\bdoes(?: not|n't) (?:support|exist|work|match|have|respond|answer|fit|provide)\b)",
    r"|(?:\bno (?:usable|suitable|active|valid|space|route|response|answer|reply|longer|matching|compatible)\b)",
    r"|(?:\bno (?:\w+ ){1,3}(?:left|found|detected)\b|\btoo (?:many|few|small|large|high|low|short|long)\b)",
    r"|(?:\bexpected .{1,60}\b(?:got|found|but|actual)\b|\btimeout[.,!]?$|\btime-out\b|\bhigh temperature\b)",
    r"|\w*backoff\b|\berrimage|\boom\w*|\bfailed\w|\b(?:notready|evicted|unhealthy|terminating)\b|\bgoroutine \d+ \[",
    r"|\*\*\* |^e: |\bwarn\b|(?:\breturned (?:status|code|exit) *-?[1-9])|\): -\d{1,3}\b|\(-\d{1,3}\)|\b0xffffff[89a-f][0-9a-f]\b",
    r"|(?:\b(?:err|error|ret|rc|res|result|status|returned|returns)[ =:]*-\d)|(?:bandwidth *: *0(?:\.0+)?$)",
);
/// Words that look like failures, and say that nothing failed, or that only a level was chosen.
const NOT_BAD: &str = concat!(
    r"=(?:warn|error|fatal)\b|(?:\b(?:0|no) (?:\w+ )?(?:failed|failures?|errors?|mismatch(?:es)?|warnings?|dropped|lost)\b)",
    r"|(?:\b[\w-]*(?:failed|failures?|errors?|err|dropped|lost|closed|overruns?|retries|timeouts?|down|downed)[\w-]*[=: ]+0(?:\s|,|;|$))",
    r"|(?:\b(?:error|failure)[ _-](?:rates?|count(?:er)?s?|handl\w+|recovery|callbacks?|cleared)[ =:]+0?\b)",
    r"|(?:\berror (?:handler|callback)s?\b|\bon[_-]failure\b|\berrors? (?:was|were )?cleared\b|\bno running processes found\b)",
);
/// Lines about GPUDirect RDMA have these words: names of programs, of drivers and of their devices.
const TOPIC: &str = concat!(
    r"ibv_|\bmlx|NET/|[Rr][Dd][Mm][Aa]|nvidia|NVRM|peer_?mem|gdr|GDR|\bUCX\b|uct_|ucp_|nvshmem",
    r"|NVSHMEM|NCCL (?:WARN|[Ee]rror|failure)|nccl[A-Z]\w+Error|libfabric|\bfi_|\b(?:EFA|efa)\b",
    r"|NIXL|nixl|Mooncake|mooncake|GPU ?Direct|[Cc]u[Ff]ile|CUFILE|nvfs|NVFS|GDS|infinistore",
    r"|\bucx|libuc[mpst]\b|mscclpp|MSCCLPP|\bUCCL\b|uccl|[Dd]eep_?[Ee][Pp]\b|mvapich|MVAPICH",
    r"|\bib_|\biw_|[Ii]nfini[Bb]and|OpenFabrics|openib|verbs|OFED|ofed|\bIB\b",
    r"|\b(?:bnxt_re|irdma|erdma|hfi1|ionic_rdma|mana_ib|hns_roce|qedr|rxe|siw)\b",
    r"|[Dd][Mm][Aa]-?_?[Bb][Uu][Ff]|\bHCA\b|\bRoCE\b",
);

/// Lines that only say that a program ends, because something before them failed.
const END: &str = concat!(
    r"Traceback|\b(?:Runtime|Dist\w*|nccl\w+|Value|Assertion|Type|OS|Connection\w*)Error\b|terminate called|core dumped|\bAborted\b",
    r"|(?i:\bexit(?:ed)?(?: with)? (?:code|status))|\b(?:srun|slurmstepd|mpirun|prterun|mpiexec)\b|Child process|what\(\):",
);

/// Lines of compilers, linkers, configuration scripts, package managers and schedulers.
const BUILD: &str = concat!(
    r"^(?:E: |W: |Error: |apt|dpkg|dnf|yum|rpm|zypper|pip|conda|npm|tar|cp|mv|install|curl|wget|helm|make(?:\[\d+\])?|gcc|g\+\+|cc|clang|nvcc|ld|collect2|cmake|CMake|configure|meson|ninja)\b",
    r"|/ld: |\bcannot find -l|: undefined reference|:\d+:\d+: (?:fatal )?error:|checking for .*\.\.\.|nodes are available|\bFailedScheduling\b",
    r"|\bnothing provides\b|\bUnmet dependencies|\bdepends on\b|\bheader files? not found|\bInsufficient \S+/",
);

fn found(slot: &'static OnceLock<Option<Regex>>, pattern: &str, line: &[u8]) -> bool {
    slot.get_or_init(|| expression(pattern)).as_ref().is_some_and(|regex| regex.is_match(line))
}

/// Returns whether a line has one of the words, apart from words that say that nothing failed.
fn has_words(slot: &'static OnceLock<Option<Regex>>, words: &str, line: &str) -> bool {
    static FINE_WORDS: OnceLock<Option<Regex>> = OnceLock::new();
    let line = line.to_ascii_lowercase();
    if !found(slot, words, line.as_bytes()) {
        return false;
    }
    let Some(fine) = FINE_WORDS.get_or_init(|| expression(NOT_BAD)) else { return true };
    let rest = fine.replace_all(line.as_bytes(), &b" "[..]);
    found(slot, words, &rest)
}

/// Returns whether a line has the plain words of a failure.
pub fn is_failure(line: &str) -> bool {
    static WORDS: OnceLock<Option<Regex>> = OnceLock::new();
    has_words(&WORDS, BAD, line)
}

/// Returns whether a line looks like a failure of any kind.
pub fn is_bad(line: &str) -> bool {
    static WORDS: OnceLock<Option<Regex>> = OnceLock::new();
    is_failure(line) || has_words(&WORDS, DOUBTFUL, line)
}

/// Returns whether a line is about GPUDirect RDMA, or about the networks and drivers that it needs.
pub fn is_topic(line: &str) -> bool {
    static TOPIC_LINE: OnceLock<Option<Regex>> = OnceLock::new();
    found(&TOPIC_LINE, TOPIC, line.as_bytes())
}

/// Returns whether a line is of a build, of an installation or of a scheduler, before any program has run.
pub fn is_of_build(line: &str) -> bool {
    static BUILD_LINE: OnceLock<Option<Regex>> = OnceLock::new();
    found(&BUILD_LINE, BUILD, line.as_bytes())
}

/// Returns whether a failure only says that a program ends.
pub fn is_end(line: &str) -> bool {
    static END_LINE: OnceLock<Option<Regex>> = OnceLock::new();
    found(&END_LINE, END, line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_is_bad() {
        for line in [
            "mlx5_core: version magic '6.8.0-59' should be '6.8.0-60'",
            "libmlx5.so.1 => not found",
            "Traceback (most recent call last):",
            "DHCP client couldn't renew",
            "job ended with exit code 139",
            "Process exited with 1",
            "Connection timed out",
            "CUDA out of memory",
            "ib_ipoib: Unknown symbol ib_register_client (err -2)",
            "kernel: BUG: kernel NULL pointer dereference, address: 0000000000000018",
            "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [ib_write_bw:1234]",
            "RIP: 0010:ib_umem_get+0x12/0x3a0 [ib_uverbs]",
            "mlx5_core 0000:3b:00.0 ens1f0: Link down",
            "bnxt_en 0000:41:00.0: Firmware not responding, status: 0x8000",
            "nvme nvme0: I/O 12 QID 3 timeout",
            "nvidia-driver-daemonset-abcde   0/2   CrashLoopBackOff   12   40m",
            "make[1]: *** No rule to make target 'modules'.  Stop.",
            "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages",
            " mlnx-ofed-kernel-dkms depends on dkms (>= 2.1); however:",
            "Package dkms is not configured yet.",
            "nothing provides kernel-abi-stablelists needed by kmod-mlnx-ofa_kernel-24.10",
            "fi_getinfo(): -61 (No data available)",
            "connection to GPU server lost while registering memory",
            "peer memory client did not answer",
            "no usable HCA was detected on this host",
            "RDMA read returned garbage",
            "expected 1.0 but got 0.0 at index 17 of the all_reduce",
            "thread 'main' panicked at src/main.rs:12:5:",
        ] {
            assert!(is_bad(line), "{line}");
        }
    }

    #[test]
    fn words_that_say_that_nothing_failed_are_not_bad() {
        for line in [
            "0 errors",
            "NCCL_DEBUG=WARN",
            "failed: 0",
            "Channel 00 : 0[0] -> 1[1] via NET/IB/0/GDRDMA",
            "100% tests passed, 0 tests failed out of 12",
            "INFO registered error callback for QP 12",
            "rx_dropped: 0",
            "error_count=0 failed_requests=0 rdma_errors=0",
        ] {
            assert!(!is_bad(line), "{line}");
        }
    }
}
