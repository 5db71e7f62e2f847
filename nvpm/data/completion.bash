# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Completion for nvpm in bash.

_nvpm_devices() {
	local file
	for file in /sys/class/infiniband/*; do [ ! -e "$file" ] || printf '%s\n' "${file##*/}"; done
}

# _nvpm_words WORD...: offers the words that begin with the typed text. `compgen -W` would expand the
# words, and execute a command in the name of a device. printf quotes the words, because bash expands
# the completed line.
_nvpm_words() {
	local word
	COMPREPLY=()
	for word; do
		printf -v word %q "$word"
		[[ $word != "${COMP_WORDS[COMP_CWORD]}"* ]] || COMPREPLY+=("$word")
	done
}

# _nvpm_files [OPTION]: offers files, and directories without a blank after their names.
_nvpm_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f "$@" -- "${COMP_WORDS[COMP_CWORD]}")
}

# _nvpm_run: completes nvpm's options before PROGRAM, and then as if the line began with PROGRAM.
_nvpm_run() {
	local at=2
	while [ $at -lt "$COMP_CWORD" ]; do
		case ${COMP_WORDS[at]} in
		--library) at=$((at + 2)) ;;
		--library=* | --audit | --debug) at=$((at + 1)) ;;
		*) break ;;
		esac
	done
	if [ $at -gt "$COMP_CWORD" ] || [ $at -lt "$COMP_CWORD" ]; then
		_nvpm_files
	elif [[ ${COMP_WORDS[COMP_CWORD]} == -* ]]; then
		_nvpm_words --library --audit --debug --help
	else
		_nvpm_files -c
	fi
}

_nvpm() {
	local commands=(status used check selftest regions compare explain run report completion help version)
	local -A options=([status]='--all --brief --json --prometheus --debug' [regions]='--json --summary --debug'
		[used]='--all --json --watch --debug'
		[check]='--ignore --debug' [report]='--write --as-it-is --no-selftest --debug'
		[compare]='--all --json --expect --html' [explain]='--journal --since --dmesg --here --all --json --redact --list'
		[selftest]='--size --gpu --device --seed --timeout --bandwidth --seconds --html --json --debug')
	local own devices
	read -ra own <<<"${options[${COMP_WORDS[1]:-none}]-}"
	mapfile -t devices < <(_nvpm_devices)
	# bash takes the = of --write=FILE for a word of its own.
	local option=${COMP_WORDS[COMP_CWORD - 1]}
	if [ "${COMP_WORDS[COMP_CWORD]}" = = ]; then
		COMP_WORDS[COMP_CWORD]=''
	elif [ "$option" = = ]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $COMP_CWORD:${COMP_WORDS[1]}:$option in
	1:*) _nvpm_words "${commands[@]}" --version ;;
	2:help:*) _nvpm_words "${commands[@]}" ;;
	*:help:* | *:version:* | *:--version:*) ;;
	*:selftest:--device) _nvpm_words "${devices[@]}" ;;
	*:selftest:--[gst]* | *:check:--ignore | *:check:-i | *:explain:--since | *:compare:--expect | *:used:--watch) ;;
	2:completion:*) _nvpm_words bash fish zsh --help ;;
	*:run:*) _nvpm_run ;;
	*:report:--write | *:compare:--html | *:selftest:--html) _nvpm_files ;;
	*:compare:* | *:explain:*) case ${COMP_WORDS[COMP_CWORD]} in -*) _nvpm_words "${own[@]}" --help ;; *) _nvpm_files ;; esac ;;
	*:status:*) _nvpm_words "${own[@]}" --help "${devices[@]}" ;;
	*) _nvpm_words "${own[@]}" --help ;;
	esac
}
complete -F _nvpm nvpm
