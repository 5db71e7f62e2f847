# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: on a kernel that loads only signed modules, the pod names the missing step, signs and loads
. /opt/operators/node.sh

# key_make NAME: makes a key and a certificate as docs/kubernetes.md says, with a shorter key.
key_make() {
	mkdir -p "/tmp/$1"
	openssl req -new -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=$1/" \
		-addext extendedKeyUsage=codeSigning -keyout "/tmp/$1/tls.key" -out "/tmp/$1/tls.crt"
	openssl x509 -in "/tmp/$1/tls.crt" -outform DER -out "/tmp/$1.der"
}

# trust NAME: does what mokutil and a reboot do on a node with firmware.
trust() { printf '/tmp/%s.der' "$1" >/sys/module/trust/parameters/certificate; }

# signer: prints who has signed the newest module of the cache.
signer() {
	local newest
	newest=$(find /var/lib/nv_peer_mem -name nvidia_peermem.ko -printf '%T@ %p\n' | sort -n | tail -n 1)
	modinfo -F signer "${newest#* }"
}

node_without_drivers
key_make first
key_make second
insmod /operators/trust.ko keyring=$((0x$(awk '$9 == ".platform:" { print $1 }' /proc/keys)))
check "the driver's container starts" driver_start "$OLD"
check "the OFED container starts" ofed_start "$FIRST"

# The modules of driver and OFED are not signed, so the kernel begins to refuse such modules here.
echo 1 >/sys/module/module/parameters/sig_enforce
equal "the kernel loads only signed modules" Y "$(cat /sys/module/module/parameters/sig_enforce)"

say "there is no key"
pod_start
pod_says "the pod says how it gets a key" 'failed: .*Key was rejected by service\. This node.s kernel loads only signed modules: give the pod a key by the Secret nv-peer-mem-signing'
expect_log "the kernel says that the module is not signed" 'Loading of unsigned module is rejected'
check "the probe fails" eval '! in_pod probe'

say "the kernel does not trust the certificate"
pod_forgets
secret_write /tmp/first
pod_says "the pod says how the certificate is enrolled" 'failed: .*Key was rejected by service\. The module is signed with the certificate of the Secret nv-peer-mem-signing, which this node.s kernel does not trust.*mokutil --import'
expect_log "the kernel says that the key is missing" 'Loading of module with unavailable key is rejected'
equal "the module is signed" first "$(signer)"

say "the kernel trusts the certificate"
pod_forgets
trust first
serves nvidia_peermem "with the first key"

say "the certificate is replaced, and the pod starts again"
check "a stop unloads the module" pod_stop
secret_write /tmp/second
trust second
pod_start
pod_says "the pod builds again" 'building: nvidia_peermem'
serves nvidia_peermem "with the second key"
equal "the module has the other signature" second "$(signer)"
check "a stop ends the pod" pod_stop
check "the module is gone" test ! -d /sys/module/nvidia_peermem
umount -l -R "$DRIVER_SHOWN" "$OFED_SHOWN/usr/src"
