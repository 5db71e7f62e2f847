// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says whether a line looks like a failure. The words are those of failures in general, because the answer may only say
//! that nothing is wrong if no line of the log is a failure of any kind.
use std::sync::OnceLock;

use regex::bytes::Regex;

use crate::explain::pattern::expression;

/// Words of failures in programs, in the kernel, in compilers, and in other languages.
const BAD: &str = concat!(
    r"(?i:\b(?:error|err|fatal|critical|fail|failed|failing|failure|failures|fails|panic|abort|aborted|aborting)\b)",
    r"|(?i:\b(?:cannot|can't|could ?n[o']t|couldn't|could not|unable|refused|rejected|denied|forbidden|timed ?out)\b)",
    r"|(?i:\btimeout (?:expired|exceeded|reached|after|waiting)|\b(?:connection|request|operation) timeout\b)",
    r"|(?i:\b(?:not (?:found|supported|permitted|available|loaded|implemented|allowed)|no such|is missing|unsupported)\b)",
    r"|(?i:\b(?:unknown symbol|undefined symbol|disagrees about version|exports duplicate symbol|version magic)\b)",
    r"|(?i:\b(?:mismatch(?:ed)?|invalid|corrupt(?:ed)?|unreachable|out of memory|oom-killer|insufficient)\b)",
    r"|\b(?:WARN|Xid|BUG:|Oops|Call Trace|Assertion|Segmentation fault|SIG(?:SEGV|BUS|ABRT|KILL|FPE)|Traceback)\b",
    r"|(?i:\b(?:exit(?:ed)?(?: with)?(?: \w+)?|exit|return)[ -](?:code|status)[ =:]*-?[1-9]|\bexited with -?[1-9])",
    r"|^\[?[EF]\d{4} |\[E\]|\w(?:Error|Exception)\b|\b(?:link is not ready|carrier lost|link down|Link Down)\b",
    r"|\b(?:Fehler|Erreur|erreur) ?:|错误|錯誤|エラー|[Ee]rror ?：",
);
/// Words that look like failures, and say that nothing failed, or that only a level was chosen.
const NOT_BAD: &str = concat!(
    r"=(?:WARN|ERROR|FATAL)\b|(?i:\b(?:0|no) (?:failed|failures?|errors?|mismatch(?:es)?)\b)",
    r"|(?i:\b(?:failed|failures?|errors?|err)[=: ]+0\b)|(?i:\b(?:error|failure)[ _-](?:rate|count(?:er)?s?|handl\w+|recovery)[ =:]+0?\b)",
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

fn found(slot: &'static OnceLock<Option<Regex>>, pattern: &str, line: &[u8]) -> bool {
    slot.get_or_init(|| expression(pattern)).as_ref().is_some_and(|regex| regex.is_match(line))
}

/// Returns whether a line looks like a failure of any kind.
pub fn is_bad(line: &str) -> bool {
    static BAD_LINE: OnceLock<Option<Regex>> = OnceLock::new();
    static FINE_WORDS: OnceLock<Option<Regex>> = OnceLock::new();
    if !found(&BAD_LINE, BAD, line.as_bytes()) {
        return false;
    }
    let Some(fine) = FINE_WORDS.get_or_init(|| expression(NOT_BAD)) else { return true };
    let rest = fine.replace_all(line.as_bytes(), &b" "[..]);
    found(&BAD_LINE, BAD, &rest)
}

/// Returns whether a line is about GPUDirect RDMA, or about the networks and drivers that it needs.
pub fn is_topic(line: &str) -> bool {
    static TOPIC_LINE: OnceLock<Option<Regex>> = OnceLock::new();
    found(&TOPIC_LINE, TOPIC, line.as_bytes())
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
        ] {
            assert!(is_bad(line), "{line}");
        }
    }

    #[test]
    fn words_that_say_that_nothing_failed_are_not_bad() {
        for line in ["0 errors", "NCCL_DEBUG=WARN", "failed: 0", "Channel 00 : 0[0] -> 1[1] via NET/IB/0/GDRDMA"] {
            assert!(!is_bad(line), "{line}");
        }
    }
}
