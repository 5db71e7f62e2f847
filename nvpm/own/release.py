# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of build_release.sh, which makes a release."""

from .model import FINE, Group, Own

RELEASE = Group(
    "release",
    (
        Own(
            "release-no-tool",
            "build_release.sh: <git|make|rpmbuild> is missing",
            "a program for making a release is not installed",
            "Install the package that the line names ([Making a "
            "release](building.md#making-a-release))",
        ),
        Own(
            "release-git-too-old",
            "git archive does not know --add-file",
            "this git is too old to make a release",
            "Install git 2.30 or later",
        ),
        Own(
            "release-no-repository",
            "is no git repository. If it is an unpacked release",
            "the script was called in an unpacked release, which has no history to make a "
            "release of",
            "Build packages from the release, as [README.md](../README.md) says; or `git clone` "
            "the repository, commit the changes, and make a release there",
        ),
        Own(
            "release-not-committed",
            "Not in the release, because it is not committed",
            "files here differ from the commit, and a release contains the commit",
            "`git commit` them, and make the release again",
        ),
        Own(
            "release-changes-unknown",
            "whether there are any is unknown, because git says",
            "git refuses to look for changes, for example because the checkout is another user's",
            "Look yourself: `git status` as the owner of the checkout. The release contains the "
            "commit",
        ),
        Own(
            "release-noexec",
            "build_release.sh: no program can be run in",
            "these directories are mounted `noexec`, as `/tmp` is on hardened machines",
            "`TMPDIR=~ ./build_release.sh`",
        ),
        Own(
            "release-name-taken",
            "<is a symbolic link, which this does not follow|is a directory: remove it>",
            "a link or a directory has the name of a file of the release",
            "Remove it, or choose another directory with `OUT=`",
        ),
        Own(
            "release-not-written",
            "build_release.sh: <w> cannot be written",
            "a file of the release cannot be written: the disk is full, or the directory is not "
            "yours",
            "Make room, or choose another directory with `OUT=`",
        ),
        Own(
            "release-cannot-clone",
            "build_release.sh: cannot clone",
            "git could not clone the repository; its lines above say why",
            "Correct `GIT_URL=` and `GIT_BRANCH=`, or leave them out",
        ),
        Own(
            "release-no-commit",
            "has no commit to make a release of",
            "the repository is empty",
            "Commit something first",
        ),
        Own(
            "release-two-versions",
            "build_release.sh: dkms.conf says version",
            "`dkms.conf` and `debian/changelog` name two versions",
            "Make them agree",
        ),
        Own(
            "release-no-rust",
            "Install what is missing and run this again, or choose --without-rust",
            "Rust is missing or has failed, and the release would lack its compiled files; the "
            "beginning of the line says why",
            "Install what the line names, or choose `--without-rust`",
        ),
        Own(
            "release-rpmbuild-failed",
            "rpmbuild failed; the lines above say why",
            "rpmbuild has failed",
            "Do what its lines above say, or choose `--without-rpm`",
        ),
        Own(
            "release-lacks",
            "they build only on machines with Rust.",
            "the release was made without compiled Rust",
            kind=FINE,
        ),
        Own(
            "release-not-made",
            "Not made: ",
            "a part of the release was left out; the line says which and why",
            kind=FINE,
        ),
        Own(
            "release-progress",
            "<Compiling the Rust: |Building debian tarball|Building nvpm as|Building source rpm for"
            "|Cloning from|Checked out: >",
            "the release is being made",
            kind=FINE,
        ),
        Own(
            "release-working",
            "Working in <*> ...",
            "the release is being made",
            kind=FINE,
        ),
        Own(
            "release-built",
            "<Built: |Made with: |Checksums: >",
            "the release is made",
            kind=FINE,
        ),
    ),
)
GROUPS = (RELEASE,)
