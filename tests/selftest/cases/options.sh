# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Options that are none, and JSON.
looks 2 'is not a size' -- --size 0
looks 2 'is not a size' -- --size 2G
looks 2 'is not a size' -- --size 16k
looks 2 'is not a number' -- --seed x
looks 2 'unrecognized arguments' -- --nonsense
looks 0 'nvpm selftest' 'Exit codes: 0' -- --help

# json TEXT EXPRESSION: of the object `said`.
json() {
	if python3 -c "import json, sys; said = json.load(open(sys.argv[1])); assert $2, said" "$scratch/said" 2>"$scratch/errors"; then
		ok
	else
		fail "$1: $(tail -n 1 "$scratch/errors")"
	fi
}
looks 0 -- --json
json passed 'said["schema"] == 1 and said["seed"] == 1 and said["size"] == 65536 and said["exit_code"] == 0'
json pair 'said["pairs"][0]["pci"] == "0000:1a:00.0" and said["pairs"][0]["device"] == "mlx5_0" and said["pairs"][0]["passed"]'
json speed 'said["pairs"][0]["to_gpu"] > 0 and said["pairs"][0]["from_gpu"] > 0 and said["pairs"][0]["freed"] == "revoked"'
export DOUBLE=wrong_from_gpu
echo '[{"section": "module", "name": "state", "verdict": "warn", "value": "another", "advice": "do"}]' >"$scratch/facts"
looks 1 -- --json
json failed 'said["failed"] == 1 and not said["pairs"][0]["passed"] and "wrong bytes" in said["pairs"][0]["failure"]'
json explained 'said["pairs"][0]["status"][0]["advice"] == "do" and said["pairs"][0]["from_gpu"] is None'
export GPUS=0
looks 3 -- --json
json nothing 'said["exit_code"] == 3 and said["absent"][0]["what"] == "no GPU" and said["pairs"] == []'
