# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: programs that ask the kernel's own mlx5_ib for dma-bufs themselves, and a card that takes none
# Nics: 2
. /lab/cuda.sh
. /lab/dmabuf.sh
load_gpu
load_inbox

# selftest EXIT_CODE TEXT PATTERN...: checks the exit code and the output of nvpm selftest.
selftest() {
	local rc=0 pattern
	nvpm selftest --device "$HCA" >/tmp/said 2>&1 || rc=$?
	cat /tmp/said
	equal "$2: exit code of nvpm selftest" "$1" "$rc"
	for pattern in "${@:3}"; do check "$2: nvpm selftest says '$pattern'" grep -qE -- "$pattern" /tmp/said; done
}

dma_buf answers EBADF none
for program in ib_write_bw ib_read_lat; do
	check "$program --use_cuda_dmabuf" pair "$program" --use_cuda_dmabuf
	for side in server client; do
		check "$program: the $side has registered a dma-buf" grep -q 'Calling ibv_reg_dmabuf_mr' "/tmp/$side"
	done
done
check "nvpm run, and in it ib_write_bw" nvpm run --library "$PRELOAD" bash -c '. /lab/lib.sh; . /lab/cuda.sh; pair ib_write_bw'
selftest 0 "with paging on demand" "^  ok  GPU 0 0000:.*, $HCA/1, dma-buf: .*; freed: pinned until deregistered"

# The driver asks a card about paging on demand when the driver takes the card. From here on, only
# the second card can page on demand.
rmmod mlx5_ib mlx5_core
nic odp off >/dev/null
insert "$INBOX/hw/mlx5/mlx5_ib.ko"
for card in mlx5_0 mlx5_1; do
	wait_for "the link of $card" grep -q ACTIVE "/sys/class/infiniband/$card/ports/1/state"
done
dma_buf answers EBADF EOPNOTSUPP
without "ib_write_bw --use_cuda_dmabuf" "Couldn't allocate MR" pair ib_write_bw --use_cuda_dmabuf
nvpm status --all >/tmp/status || true
NO='no: it answers EBADF, but cannot page on demand .ODP., without which mlx5 takes none'
tr -s ' \n' ' ' </tmp/status >/tmp/words
check "nvpm status says why this card takes none" grep -qE "dma-buf $NO since kernel [^\[]*\[$HCA\]" /tmp/words
check "nvpm status says that the other card does" grep -qE 'dma-buf yes: it answers EBADF \[mlx5_1\]' /tmp/words
selftest 1 "without paging on demand" "status: RDMA device $HCA: dma-buf: $NO"
nic odp on >/dev/null
