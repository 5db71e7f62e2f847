# shellcheck shell=bash
# Apart: zz
. /lab/bench/lib.sh
prepare_bench
for module in $(word mods "$MODULES" | tr , ' '); do for mode in persistent revocable; do
load_measured $module $mode
for layout in contiguous holes64k; do echo $layout >"$NVIDIA/layout"
for size in $SIZES; do
 measured "\"layout\":\"$layout\",\"size\":$(bytes "$size"),\"published\":0" --length "$size" --times "$(rounds "$size")"
done; done
rmmod $module
done; done
