# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The kubelet's part: runs the pod of the DaemonSet with crun. Each start has a new copy of the
# image's files, as after the restart of a container; the mounts of the node stay.

POD=/run/pod
POD_LOG=/tmp/pod.log
# The Secret of the DaemonSet.
SECRET=/run/secrets/nv-peer-mem-signing

# node_without_drivers: hides the modules and sources that the lab has installed on the node. The
# node then has the kernel's own RDMA core, no NVIDIA driver, and no headers of the kernel.
node_without_drivers() {
	local directory
	mount --make-rshared /
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mkdir /run/sources
	mount --bind /usr/src /run/sources
	mount --make-private /run/sources
	for directory in "/lib/modules/$(uname -r)"/{updates,extra} /usr/src; do
		mount -t tmpfs tmpfs "$directory"
	done
	mkdir -p "$SECRET" /run/nvidia/validations /run/mellanox/drivers /run/nv-peer-mem /var/lib/nv_peer_mem
	mount -t tmpfs -o mode=0755 tmpfs /var/lib/nv_peer_mem
}

# secret_write DIRECTORY: has the Secret have the files of DIRECTORY. A pod that runs sees all of them
# change at once, because a link names their directory.
secret_write() {
	local file
	rm -rf "$SECRET/..new"
	cp -rT "$1" "$SECRET/..$(basename "$1")"
	ln -s "..$(basename "$1")" "$SECRET/..new"
	mv -T "$SECRET/..new" "$SECRET/..data"
	for file in "$1"/*; do ln -sfn "..data/${file##*/}" "$SECRET/${file##*/}"; done
}

# pod_start [PATCH...]: starts the pod, with these patches of its manifest.
pod_start() {
	mkdir -p "$POD/files"
	mount -t tmpfs tmpfs "$POD/files"
	mkdir -p "$POD/files/upper" "$POD/files/work" "$POD/root"
	mount -t overlay -o "lowerdir=/operators/image:/image,upperdir=$POD/files/upper,workdir=$POD/files/work" overlay "$POD/root"
	mount --make-private "$POD/root"
	python3 /opt/operators/bundle.py "$POD/root" /operators/daemonset.yaml "$@" >"$POD/config.json"
	: >"$POD_LOG"
	crun --cgroup-manager=disabled run --bundle "$POD" pod >>"$POD_LOG" 2>&1 </dev/null &
	pod=$!
}

# pod_files_end: removes the container's files, as a kubelet does for each container that has ended.
pod_files_end() {
	cat "$POD_LOG"
	umount "$POD/root"
	umount "$POD/files"
}

# pod_stop: ends the pod as a kubelet does, by a signal. Succeeds if the pod ends by itself.
pod_stop() {
	local ended=0
	crun kill pod TERM
	wait "$pod" || ended=$?
	pod_files_end
	[ "$ended" = 0 ]
}

# pod_kill: ends the container without a warning, as when it crashes.
pod_kill() {
	crun kill pod KILL
	wait "$pod" || true
	pod_files_end
}

# nv_peer_mem WORD...: runs a command of the image in the pod, as a probe of the kubelet does.
in_pod() { crun exec pod nv-peer-mem "$@"; }

# pod_says TEXT PATTERN [SECONDS]: checks that the pod's log gets a line that matches PATTERN.
pod_says() {
	local tries=$((${3:-60} * 2))
	until grep -qE -- "$2" "$POD_LOG"; do
		tries=$((tries - 1))
		if [ "$tries" = 0 ] || ! kill -0 "$pod"; then
			cat "$POD_LOG"
			break
		fi
		sleep 0.5
	done
	check "$1" grep -qE -- "$2" "$POD_LOG"
	# Without this line, everything that follows would fail.
	grep -qE -- "$2" "$POD_LOG"
}

# pod_forgets: empties the pod's log, so that pod_says looks only at later lines.
pod_forgets() {
	cat "$POD_LOG"
	: >"$POD_LOG"
}
