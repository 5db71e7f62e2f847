#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes the two source packages of a release: a source rpm and, for Debian, the upstream
# tarball; nvpm-bin, which is nvpm as one file, and the preloaded library, for machines and containers
# without them; the sources of nvpm-bin's crates; also a record of the tools, and the checksums of
# all files. The repository is cloned, so the
# packages contain only committed files; other changes are named. The same commit and the same tools,
# above all the same rustc, give the same files, byte for byte, whatever the user's settings of git
# and rpm are.
set -eu
# Every locale gives the same result.
LC_ALL=C
export LC_ALL

usage() {
	cat <<'USAGE'
Usage: build_release.sh [--without-rust] [--without-program[=ARCH]] [--without-rpm]
Makes the source packages of a release, on any machine with git 2.30 or later, make,
rpmbuild, and rustc 1.78 or later with the source of its library; for the preloaded
library lld or, of each processor, binutils; for nvpm-bin cargo and rustc 1.85 or later
with the library, the C compiler and Debian 11's C library of each processor.
  --without-rust     compile no Rust: the packages then build only on machines with Rust
  --without-program  compile no nvpm-bin, for ARCH (x86_64 or aarch64) or at all: packages
                     have no nvpm then, unless there is a cargo where they are built
  --without-rpm      make no source rpm
Environment:
  GIT_URL=     repository to clone        (default: the one this script is in)
  GIT_BRANCH=  branch or tag              (default: what is checked out there)
  OUT=         directory for the files    (default: ~/nv_peer_mem-release)
  RUSTC=       Rust's compiler, with the source of its library (default: what is found)
  CARGO=       cargo for nvpm-bin                              (default: what is found)
  NVPM_SYSROOTS=  Debian 11's C library, from nvpm/sysroots (default: ~/.cache/nvpm-sysroots)
  TMPDIR=      directory to work in       (default: /tmp, or OUT where that is noexec)
USAGE
}

die() {
	printf 'build_release.sh: %s\n' "$*" >&2
	exit 1
}

without_rust='' without_rpm='' programs='x86_64 aarch64'
for option; do
	case $option in
	--without-rust) without_rust=yes programs='' ;;
	--without-program) programs='' ;;
	--without-program=x86_64 | --without-program=aarch64)
		programs=$(echo "$programs" | sed "s/${option#*=}//; s/^ *//; s/ *$//")
		;;
	--without-rpm) without_rpm=yes ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
GIT_URL=${GIT_URL:-$here}
GIT_BRANCH=${GIT_BRANCH:-}
OUT=${OUT:-${HOME:-/tmp}/nv_peer_mem-release}

# check_repository: ends with an error in an unpacked release, which has no history to make a release
# of.
check_repository() {
	[ "$GIT_URL" = "$here" ] && [ ! -e "$here/.git" ] && [ -z "${GIT_DIR-}" ] || return 0
	die "$here is no git repository. If it is an unpacked release, there is nothing to be done: README.md says how packages are built from it (dpkg-buildpackage, or rpmbuild --rebuild of the source rpm). Otherwise give the repository with GIT_URL=."
}

# changes: prints the files here with changes that are not committed, in one line. Prints nothing if
# the release is made from elsewhere. Fails if git refuses to look, for example because the checkout
# belongs to another user.
changes() {
	[ "$GIT_URL" = "$here" ] || return 0
	listed=$(git -C "$here" -c core.quotePath=true status --porcelain --untracked-files=normal 2>&1) || {
		printf '%s\n' "$listed" | head -n 1
		return 1
	}
	printf '%s\n' "$listed" | cut -c4- | paste -sd, | sed 's/,/, /g'
}

# name_changes: says which changes the release does not contain, or that this is unknown.
name_changes() {
	if [ "$unknown" ]; then
		echo "Changes that are not committed are not in the release; whether there are any is unknown, because git says: $changed"
	elif [ "$changed" ]; then
		echo "Not in the release, because it is not committed: $changed"
	fi
}

# name_packages: what rpmbuild and Rust are called on this distribution.
name_packages() {
	rpm_package=rpm-build rust_packages='rust and rust-src'
	# shellcheck source=/dev/null
	case $([ ! -r /etc/os-release ] || { . /etc/os-release && echo "${ID-} ${ID_LIKE-} ${VERSION_ID-}"; }) in
	*ubuntu*) rpm_package=rpm rust_packages='rustc-1.80 and rust-1.80-src, or later ones' ;;
	debian*\ 1[12]) rpm_package=rpm rust_packages='rustc-web and rust-web-src' ;;
	*debian*) rpm_package=rpm rust_packages='rustc and rust-src' ;;
	esac
	! command -v rustup >/dev/null || rust_packages="$rust_packages; or, for rustup's rustc: rustup component add rust-src"
}

# check_tools: what is missing is named before anything is done.
check_tools() {
	command -v git >/dev/null || die "git is missing (package git)."
	case $(git archive -h 2>&1) in
	*add-file*) ;;
	*) die "$(git --version) is too old: git archive does not know --add-file. Install git 2.30 or later." ;;
	esac
	command -v make >/dev/null || die "make is missing (package make)."
	[ "$without_rpm" ] || command -v rpmbuild >/dev/null ||
		die "rpmbuild is missing (package $rpm_package). Install it, or choose --without-rpm for the Debian tarball alone."
}

# check_program: the same for nvpm-bin.
check_program() {
	for arch in $programs; do
		lacking=$(sh "$here/nvpm/compile" lacking "$arch") ||
			die "nvpm-bin cannot be compiled for $arch: $lacking. Install what is missing and run this again, or choose --without-program=$arch for a release without it."
	done
}

# runs_programs DIR: whether programs can be run there: not where it is mounted noexec, as /tmp
# is on hardened machines.
runs_programs() {
	program=$(mktemp "$1/nv.XXXXXX") || return 1
	printf '#!/bin/sh\n' >"$program"
	chmod 700 "$program"
	runs=yes
	"$program" 2>/dev/null || runs=no
	rm -f "$program"
	[ $runs = yes ]
}

# choose_temporary: a directory for the clone, whose scripts are run there.
choose_temporary() {
	for candidate in "${TMPDIR:-/tmp}" "$OUT"; do
		if runs_programs "$candidate"; then
			printf '%s\n' "$candidate"
			return
		fi
	done
	die "no program can be run in ${TMPDIR:-/tmp}, nor in $OUT: are they mounted noexec? Choose another directory to work in with TMPDIR=, below your home, say."
}

name_packages
check_tools
check_repository
check_program
unknown=
changed=$(changes) || unknown=yes
mkdir -p "$OUT"
OUT=$(CDPATH='' cd -- "$OUT" && pwd)
umask 022
temporary=$(choose_temporary)
work=$(mktemp -d "$temporary/nv.XXXXXX")
new=
trap 'rm -rf "$work" ${new:+"$new"}' EXIT
trap 'exit 1' HUP INT TERM

# In a directory that is writable for all, another user may have put a link, which would
# have another file overwritten, or a directory.
free_name() {
	[ ! -L "$1" ] || die "$1 is a symbolic link, which this does not follow: remove it, or choose another directory with OUT=."
	[ ! -d "$1" ] || die "$1 is a directory: remove it, or choose another directory with OUT=."
}

# deliver FILE NAME [MODE]: NAME appears whole, or not at all.
deliver() {
	free_name "$2"
	new=$(mktemp "$2.XXXXXX")
	if ! { cat "$1" >"$new" && chmod "${3:-644}" "$new" && mv -T "$new" "$2"; }; then
		die "$2 cannot be written."
	fi
	new=
}

# describe: prints the commit and the tools on which the files depend, most important first; nothing
# about this machine or this day.
describe() {
	echo "release   nvidia-peer-memory $newest"
	echo "commit    $(git rev-parse HEAD)"
	echo "date      $(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)"
	echo "rustc     $(describe_rustc)"
	echo "git       $(git --version | sed 's/^git version //')"
	echo "gzip      $(gzip --version | sed -n '1s/^gzip //p')"
	echo "rpmbuild  $(describe_rpmbuild)"
	for arch in x86_64 aarch64; do
		printf 'linker    %s %s\n' "$arch" "$(describe_linker "$arch")"
	done
	for arch in x86_64 aarch64; do
		printf 'nvpm-bin  %s %s\n' "$arch" "$(describe_program "$arch")"
	done
}

describe_rpmbuild() {
	if [ "$without_rpm" ]; then
		echo none
	else
		rpmbuild --version | sed 's/.* //'
	fi
}

describe_rustc() {
	if [ "$lacks" ]; then
		echo none
		return
	fi
	eval "$rust"
	"$RUSTC" --version --verbose | sed -n '1s/^rustc //p; s/^LLVM version: /LLVM /p' | paste -sd, | sed 's/,/, /'
}

# describe_program ARCH: prints the tools that have made nvpm-bin. xz has packed the sources of its crates.
describe_program() {
	if [ -e "nvpm/prebuilt/$1.made" ]; then
		sed -n 's/^\(rustc\|cargo\|linker\|library\)  */\1 /p' "nvpm/prebuilt/$1.made" | paste -sd';' | sed "s/;/; /g; s/\$/; xz $(xz --version | sed -n '1s/.* //p')/"
	else
		echo none
	fi
}

describe_linker() {
	if [ "$lacks" ]; then
		echo none
		return
	fi
	eval "$rust"
	RUSTC=$RUSTC sh preload/link --which "$1" 2>/dev/null || echo none
}

# rpm_changelog FILE: converts Debian's changelog to rpm's format.
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

name_changes >&2
echo "Working in $work ..."
echo "Cloning from $GIT_URL ..."
# The user's settings for line ends, attributes and hooks would change the files. The settings of the
# clone override them, but not settings in the environment. So the files are written after those are
# gone. The clone still needs settings such as safe.directory. A working tree or an index of the
# user's is never meant.
export GIT_ATTR_NOSYSTEM=1
unset GIT_WORK_TREE GIT_INDEX_FILE GIT_NAMESPACE GIT_OBJECT_DIRECTORY
git clone --quiet --no-checkout --template= -c core.autocrlf=false -c core.eol=lf \
	-c core.attributesFile=/dev/null -c core.hooksPath=/dev/null \
	${GIT_BRANCH:+--branch "$GIT_BRANCH"} "$GIT_URL" "$work/clone" ||
	die "cannot clone $GIT_URL${GIT_BRANCH:+ (branch $GIT_BRANCH)}."
cd "$work/clone"
# shellcheck disable=SC2046 # a list of names
unset $(git rev-parse --local-env-vars)
git rev-parse --verify --quiet HEAD >/dev/null ||
	die "$GIT_URL has no commit to make a release of."
git checkout --quiet --force HEAD
echo "Checked out: $(git log -1 --format='%h %s')"

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
newest=$(sed -n '1s/^.*(\(.*\)).*$/\1/p' debian/changelog)
release=${newest##*-}
[ "$version-$release" = "$newest" ] ||
	die "dkms.conf says version $version, debian/changelog $newest: make them agree."
name=nvidia-peer-memory-$version
tarball=$OUT/nvidia-peer-memory_$version.orig.tar.gz
srpm=$OUT/nvidia_peer_memory-$version-$release.src.rpm
made_with=$OUT/nvidia-peer-memory_$version.made-with
sums=$OUT/SHA256SUMS
crates=$OUT/nvpm-$version-crates.tar.xz
for file in "$tarball" "$srpm" "$made_with" "$sums" "$crates" "$OUT/nvpm-$version-x86_64" "$OUT/nvpm-$version-aarch64" \
	"$OUT/libnvpm_preload-$version"-*.so; do free_name "$file"; done

echo
# For machines without Rust (docs/building.md). The packages contain it, git does not.
lacks='' why=''
rust=
if [ "$without_rust" ]; then
	why="--without-rust was chosen"
else
	rust=$(sh build/find/rustc) || why="rustc $(sed -n 's/^oldest_rustc=//p' build/find/oldest.sh) or later with the source of its library is missing (packages $rust_packages)"
fi
# compiled FILE COMMAND...: whether COMMAND has made FILE, of Rust; else it is one that is lacking.
compiled() {
	file=$1
	shift
	if [ -z "$why" ]; then
		echo "Compiling the Rust: $file..."
		! "$@" >"$work/compile.log" 2>&1 || return 0
		tail -n 5 "$work/compile.log" >&2
		why="rustc has failed; the lines above say why"
	fi
	lacks="$lacks $file"
	return 1
}
set --
for arch in x86_64 aarch64; do
	! compiled "build/prebuilt/$arch.S" env NVPM_ARCH=$arch make -s prebuilt ||
		set -- "$@" --prefix="$name/build/prebuilt/" --add-file="build/prebuilt/$arch.S"
	! compiled "preload/prebuilt/$arch.S" env NVPM_ARCH=$arch sh preload/build assembly ||
		set -- "$@" --prefix="$name/preload/prebuilt/" --add-file="preload/prebuilt/$arch.S"
done
# The program is for machines without Rust, too. A machine with cargo can compile it from these crates.
[ -z "$programs" ] || {
	echo "Packing the sources of the crates..."
	sh nvpm/compile crates || die "the sources of nvpm-bin's crates are not packed; the lines above say why."
}
for arch in $programs; do
	echo "Compiling the Rust: nvpm/prebuilt/$arch..."
	sh nvpm/compile release "$arch" || die "nvpm-bin is not compiled for $arch; the lines above say why."
done
files=${programs:+crates.tar.xz}
# The second one is the program of the container image.
for arch in $programs; do files="$files $arch keeper-$arch"; done
for file in $files; do
	set -- "$@" --prefix="$name/nvpm/prebuilt/" --add-file="nvpm/prebuilt/$file" --add-file="nvpm/prebuilt/$file.made"
done
# The identity of a build has the commit (build/identity).
git rev-parse HEAD >build/commit
for arch in $programs; do sh nvpm/compile stamp "$arch"; done
set -- "$@" --prefix="$name/build/" --add-file=build/commit
[ -z "$lacks" ] || [ "$without_rust" ] ||
	die "$why. The packages would lack$lacks. Install what is missing and run this again, or choose --without-rust for packages that build only on machines with Rust."

echo "Building debian tarball for nvidia-peer-memory..."
# The archive has git's order, the commit's time, and no name of an owner.
git -c tar.umask=0022 archive --format=tar "$@" --prefix="$name/" HEAD >"$work/$name.tar"
gzip -n -9 "$work/$name.tar"

# For containers, whose processor may be another one, and whose C library an older one.
libraries='' unlinked=''
for arch in x86_64 aarch64; do
	library=libnvpm_preload-$version-$arch.so
	if [ "$lacks" ]; then
		unlinked="$unlinked, $library (it is made of Rust)"
	elif eval "$rust" && RUSTC=$RUSTC sh preload/link "$arch" "$work/$library" 2>"$work/link.log"; then
		libraries="$libraries $library"
	else
		unlinked="$unlinked, $library ($(sed -n '$s/^nvpm_preload: //; $p' "$work/link.log"))"
	fi
done

# The source rpm and the lists of components have the commit's time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
if [ -z "$without_rpm" ]; then
	echo "Building source rpm for nvidia_peer_memory..."
	mkdir "$work/rpm"
	{
		sed "s/@VERSION@/$version/; s/@RELEASE@/$release/${lacks:+; s/^%bcond_without preload/%bcond_with preload/}" rpm/nvidia_peer_memory.spec
		rpm_changelog debian/changelog
	} >"$work/nvidia_peer_memory.spec"
	# The source rpm contains the spec file with all macros expanded: it must not show
	# the present time, the name of this machine, its kernel, or this directory.
	touch -d "@$SOURCE_DATE_EPOCH" "$work/$name.tar.gz" "$work/nvidia_peer_memory.spec"
	# Before 4.20, rpm puts the name of the builder into it, too. Macros of the user, or of the site,
	# would put in names, or pack the files in another way.
	(cd "$work" && unset XDG_CONFIG_HOME && HOME=$work rpmbuild -bs --quiet --nodeps --define "_topdir rpm" --define "_sourcedir ." \
		--define "_srcdefattr (-,root,root)" --define "_source_payload w9.gzdio" \
		--define "_source_filedigest_algorithm 8" \
		--undefine=packager --undefine=vendor --undefine=distribution --undefine=disturl --undefine=bugurl \
		--define "_srcrpmdir rpm" --define "_buildhost localhost" --define "kernel_version KVER" \
		--define "use_source_date_epoch_as_buildtime 1" nvidia_peer_memory.spec) >"$work/rpm.log" 2>&1 || {
		cat "$work/rpm.log" >&2
		die "rpmbuild failed; the lines above say why."
	}
	deliver "$work/rpm/${srpm##*/}" "$srpm"
else
	srpm=
fi
deliver "$work/$name.tar.gz" "$tarball"
for library in $libraries; do deliver "$work/$library" "$OUT/$library"; done
singles=
for arch in $programs; do
	deliver "nvpm/prebuilt/$arch" "$OUT/nvpm-$version-$arch" 755
	singles="$singles nvpm-$version-$arch"
done
[ -z "$programs" ] || {
	deliver nvpm/prebuilt/crates.tar.xz "$crates"
	singles="$singles ${crates##*/}"
}
# The lists name the crates of the programs, for scanners. A release is whole without them.
lists='' unlisted=''
if [ "$programs" ]; then
	if sh nvpm/compile sbom "$work" 2>"$work/sbom.log"; then
		for component in nvpm nv-peer-mem; do
			deliver "$work/$component.cdx.json" "$OUT/$component-$version.cdx.json"
			lists="$lists $component-$version.cdx.json"
		done
	else
		unlisted=$(sed -n '$s/^nvpm-bin: //; $s/\.$//; $p' "$work/sbom.log")
	fi
fi
describe >"$work/made-with"
deliver "$work/made-with" "$made_with"
# shellcheck disable=SC2086 # names without blanks
(cd "$OUT" && sha256sum "${tarball##*/}" ${srpm:+"${srpm##*/}"} $singles $libraries $lists "${made_with##*/}") >"$work/sums"
deliver "$work/sums" "$sums"

echo
[ -z "$lacks" ] || echo "These packages lack$lacks: they build only on machines with Rust. $why."
name_changes
for arch in x86_64 aarch64; do
	case $programs in
	*$arch*) ;;
	*) echo "Not made: nvpm-$version-$arch. So packages for $arch have no nvpm, unless there is a cargo where they are built." ;;
	esac
done
[ -z "$unlinked" ] || echo "Not made: ${unlinked#, }."
[ -z "$unlisted" ] || echo "Not made: the lists of the programs' components (CycloneDX): $unlisted."
[ -z "$srpm" ] || echo "Built: $srpm"
echo "Built: $tarball"
for library in $libraries; do echo "Built: $OUT/$library (for nvpm run, beside nvpm-$version-ARCH)"; done
for arch in $programs; do echo "Built: $OUT/nvpm-$version-$arch (nvpm without an installation)"; done
for list in $lists; do echo "Built: $OUT/$list (its components, for scanners)"; done
echo "Made with: $made_with"
echo "Checksums: $sums (sha256sum -c SHA256SUMS)"
cat <<EOT

To install on Debian or Ubuntu (README.md lists what this needs), not in a directory that is mounted noexec:
    cd $OUT && tar xzf ${tarball##*/} && cd $name
    dpkg-buildpackage -us -uc -b
    sudo apt-get install ../nvidia-peer-memory_${newest}_*.deb ../nvidia-peer-memory-dkms_${newest}_all.deb
EOT
[ -z "$srpm" ] || cat <<EOT

To install on a system with RPM (README.md lists what this needs):
    rpmbuild --rebuild --without kmod $srpm
    sudo dnf install ~/rpmbuild/RPMS/*/nvidia_peer_memory-$newest.*.rpm ~/rpmbuild/RPMS/noarch/nvidia_peer_memory-dkms-$newest.noarch.rpm
EOT
