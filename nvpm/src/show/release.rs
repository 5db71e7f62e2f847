// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tells the version of nvpm and the commit of the release.

/// The version, as in dkms.conf. The check `version` fails if the two differ.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `compile stamp` writes the commit of a release into the program, in place of the zeros. So the program is not
/// compiled again for a commit that does not change its sources.
static COMMIT: &[u8; 52] = b"nvpm-commit:0000000000000000000000000000000000000000";
/// The first character of the commit, and the number of characters that are shown.
const BEGIN: usize = 12;
const SHOWN: usize = 12;

/// Returns the version and the commit, because several commits may have the same version. A checkout may have changes
/// that are in no commit, so for a checkout the text says so in place of the commit.
pub fn release() -> String {
    // Without this function, the compiler would compute the text, and the program would not have the zeros.
    let commit = std::hint::black_box(COMMIT).get(BEGIN..BEGIN + SHOWN).unwrap_or_default();
    let commit = String::from_utf8_lossy(commit);
    if commit.bytes().all(|digit| digit == b'0') {
        return format!("{VERSION} (a checkout)");
    }
    format!("{VERSION} (commit {commit})")
}
