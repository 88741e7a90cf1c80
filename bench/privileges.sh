#!/usr/bin/env bash
# Runs commands of strandline on a process of another user, with sets of capabilities, and
# prints which of them are enough. docs/privileges.md has the result.
#
#	bench/privileges.sh ./strandline
#
# It needs root, setpriv and a python3 that every user can run.
set -eu
program=$(realpath "$1")
work=$(mktemp -d)
python=$(PATH=/usr/bin:/bin command -v python3)
trap 'kill "$target" 2>/dev/null || :; rm -rf "$work"' EXIT
cat >"$work/grow.py" <<'PYTHON'
import mmap, time
kept = []
while True:
    m = mmap.mmap(-1, 1 << 20)
    for at in range(0, 1 << 20, 4096):
        m[at] = 1
    kept.append(m)
    time.sleep(0.05)
PYTHON
cp "$program" "$work/strandline"
chmod -R a+rX "$work"
setpriv --reuid 65534 --regid 65534 --clear-groups "$python" "$work/grow.py" &
target=$!
sleep 1

# try WANT CAPABILITIES ARG... runs a command as a user with capabilities, and looks for a text.
try() {
	local want=$1 capabilities=$2 list='' name flags
	shift 2
	flags=(--inh-caps=-all --ambient-caps=-all)
	if [ -n "$capabilities" ]; then
		for name in $capabilities; do list+="${list:+,}+$name"; done
		flags=(--inh-caps "$list" --ambient-caps "$list")
	fi
	if HOME=/tmp setpriv --reuid 1000 --regid 1000 --clear-groups "${flags[@]}" "$work/strandline" "$@" 2>&1 | grep -qE "$want"; then
		printf 'enough  '
	else
		printf 'no      '
	fi
	printf '%-12s %s\n' "$1" "${capabilities:-none}"
}

traces() {
	try 'at grow.py:' "$1" trace --pid "$target" --duration 4s
}

for set in "" sys_ptrace "sys_ptrace dac_read_search"; do
	try '^no hooks|compared' "$set" hooks --pid "$target"
done
for set in "" "bpf perfmon dac_read_search" "bpf perfmon sys_ptrace" "bpf perfmon sys_ptrace dac_read_search" "bpf perfmon sys_ptrace dac_read_search sys_admin"; do
	traces "$set"
done
if mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; then
	echo "with tracefs:"
	for set in "bpf perfmon dac_read_search" "bpf perfmon sys_ptrace" "bpf perfmon sys_ptrace dac_read_search"; do
		traces "$set"
	done
	umount /sys/kernel/tracing
fi
