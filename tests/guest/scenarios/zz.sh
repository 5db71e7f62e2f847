# shellcheck shell=bash
# Apart: zz
. /lab/bench/lib.sh
prepare_held() { :; }
prepare_bench
echo $(word layout contiguous) >"$NVIDIA/layout"
m=$(word mod nv_peer_mem) way=$(word way fixed)
if [ $way = revocable ]; then modprobe $m persistent_api_support=0; else modprobe $m; fi
gpuverbs measure --length 1M --way $way --times 21
grep -E '\[' /proc/kallsyms | sed 's/^/KSYM /'
say LOOPING
gpuverbs measure --length $(word len 1M) --way $way --cycles 100000
