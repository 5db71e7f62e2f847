#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes the source packages of a release: a source rpm and, for Debian, the
# upstream tarball. They are made from a fresh clone, so only from what is
# committed. Both are the same, byte for byte, for the same commit.
set -eu

usage() {
	cat <<'USAGE'
Usage: build_release.sh [--without-rust]
  --without-rust  make packages that build only where there is Rust, if there is none here
Environment:
  GIT_URL=     repository to clone        (default: the one this script is in)
  GIT_BRANCH=  branch or tag              (default: what is checked out there)
  OUT=         directory for the packages (default: /tmp)
  RUSTC=       Rust's compiler, with the source of its library (default: what is found)
USAGE
}

die() {
	printf 'build_release.sh: %s\n' "$*" >&2
	exit 1
}

without_rust=
case ${1-} in
"") ;;
--without-rust) without_rust=yes ;;
-h | --help)
	usage
	exit 0
	;;
*)
	usage >&2
	exit 2
	;;
esac

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
GIT_URL=${GIT_URL:-$here}
GIT_BRANCH=${GIT_BRANCH:-}
OUT=${OUT:-/tmp}

command -v git >/dev/null || die "git is missing: install git."
mkdir -p "$OUT"
OUT=$(CDPATH='' cd -- "$OUT" && pwd)
umask 022
work=$(mktemp -d "${TMPDIR:-/tmp}/nv.XXXXXX")
new=
trap 'rm -rf "$work" ${new:+"$new"}' EXIT
trap 'exit 1' HUP INT TERM

# Where anybody may write, somebody may have put a link there, to have another file
# overwritten, or a directory.
free_name() {
	[ ! -L "$1" ] || die "$1 is a symbolic link, which this does not follow: remove it, or choose another directory with OUT=."
	[ ! -d "$1" ] || die "$1 is a directory: remove it, or choose another directory with OUT=."
}

# deliver FILE NAME: there at once and whole, or not at all.
deliver() {
	free_name "$2"
	new=$(mktemp "$2.XXXXXX")
	if ! { cat "$1" >"$new" && chmod 644 "$new" && mv -T "$new" "$2"; }; then
		die "$2 cannot be written."
	fi
	new=
}

# rpm_changelog FILE: Debian's changelog as rpm wants it.
rpm_changelog() {
	awk '
	/^[^ ]/ { version = substr($2, 2, length($2) - 2); changes = "" }
	/^  \* / { changes = changes "- " substr($0, 5) "\n" }
	/^    / { changes = changes "  " substr($0, 5) "\n" }
	/^ -- / {
		match($0, /  [A-Z][a-z][a-z], /)
		split(substr($0, RSTART + 2), date)
		printf "* %s %s %02d %s %s - %s\n%s\n", substr(date[1], 1, 3), date[3], date[2], date[4],
			substr($0, 5, RSTART - 5), version, changes
	}' "$1"
}

echo "Working in $work ..."
echo "Cloning from $GIT_URL ..."
git clone --quiet ${GIT_BRANCH:+--branch "$GIT_BRANCH"} "$GIT_URL" "$work/clone" ||
	die "cannot clone $GIT_URL${GIT_BRANCH:+ (branch $GIT_BRANCH)}."
cd "$work/clone"
git rev-parse --verify --quiet HEAD >/dev/null ||
	die "$GIT_URL has no commit to make a release of."
echo "Checked out: $(git log -1 --format='%h %s')"

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
newest=$(sed -n '1s/^.*(\(.*\)).*$/\1/p' debian/changelog)
release=${newest##*-}
[ "$version-$release" = "$newest" ] ||
	die "dkms.conf says version $version, debian/changelog $newest: make them agree."
name=nvidia-peer-memory-$version
tarball=$OUT/nvidia-peer-memory_$version.orig.tar.gz
srpm=$OUT/nvidia_peer_memory-$version-$release.src.rpm
free_name "$tarball"
free_name "$srpm"

echo
# For machines without Rust (docs/rust.md): in the packages, not in git.
set --
lacks=
for arch in x86_64 aarch64; do
	echo "Compiling the Rust half for $arch..."
	if NVPM_ARCH=$arch make -s prebuilt >"$work/ready.log" 2>&1; then
		set -- "$@" --add-file="src/prebuilt/$arch.S"
	else
		tail -n 5 "$work/ready.log" >&2
		lacks="$lacks src/prebuilt/$arch.S"
	fi
done
lacking="lack$lacks, since there is no rustc of 1.78 or later with the source of its library here (package rust-src); the lines above say more"
[ -z "$lacks" ] || [ "$without_rust" ] ||
	die "packages would $lacking. Install it and run this again, or choose --without-rust for packages that build only where there is Rust."

echo "Building debian tarball for nvidia-peer-memory..."
# The archive has git's order, the commit's time and no owner's name.
git -c tar.umask=0022 archive --format=tar --prefix="$name/src/prebuilt/" "$@" --prefix="$name/" HEAD >"$work/$name.tar"
gzip -n -9 "$work/$name.tar"

if command -v rpmbuild >/dev/null; then
	echo "Building source rpm for nvidia_peer_memory..."
	mkdir "$work/rpm"
	{
		sed "s/@VERSION@/$version/; s/@RELEASE@/$release/" rpm/nvidia_peer_memory.spec
		rpm_changelog debian/changelog
	} >"$work/nvidia_peer_memory.spec"
	# The commit's time, and neither this machine's name nor this directory's: the
	# source rpm holds the spec file with every macro expanded.
	SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
	export SOURCE_DATE_EPOCH
	touch -d "@$SOURCE_DATE_EPOCH" "$work/$name.tar.gz" "$work/nvidia_peer_memory.spec"
	(cd "$work" && rpmbuild -bs --quiet --nodeps --define "_topdir rpm" --define "_sourcedir ." \
		--define "_srcrpmdir rpm" --define "_buildhost localhost" \
		--define "use_source_date_epoch_as_buildtime 1" nvidia_peer_memory.spec) >"$work/rpm.log" 2>&1 || {
		cat "$work/rpm.log" >&2
		die "rpmbuild failed; the lines above say why."
	}
	deliver "$work/rpm/${srpm##*/}" "$srpm"
else
	srpm=
	echo "No source rpm: rpmbuild is not installed (package rpm on Debian, rpm-build elsewhere)."
fi
deliver "$work/$name.tar.gz" "$tarball"

echo
[ -z "$lacks" ] || echo "These packages $lacking. They serve machines only that have Rust themselves."
[ -z "$srpm" ] || echo "Built: $srpm"
echo "Built: $tarball"
[ -z "$srpm" ] || cat <<EOT

To install run on RPM based OS:
    # rpmbuild --rebuild $srpm
    # rpm -ivh <path to generated binary rpm files>
EOT
cat <<EOT

To install on DEB based OS:
    # dir=\$(mktemp -d) && tar xzf $tarball -C "\$dir" && cd "\$dir/$name"
    # dpkg-buildpackage -us -uc -b
    # apt-get install ../nvidia-peer-memory_*.deb ../nvidia-peer-memory-dkms_*.deb
(or dpkg -i with each of them, in this order)
EOT
