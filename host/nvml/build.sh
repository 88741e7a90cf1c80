#!/bin/sh
# Builds the programs that load the driver's library, and notes what they were built
# from. They need no version of the C library: see c/libc.c. With --check it changes
# nothing and reports whether the committed programs are what these sources make; exit
# status 77 means that a compiler is missing or is not the one that built them.
set -eu
cd "$(dirname "$0")/c"
noted=../object/reader.txt
compiler() { "$1" --version 2>/dev/null | head -n 1; }
build() { # COMPILER PROGRAM
	stubs=$(mktemp -d)
	"$1" -shared -w -fno-builtin -nostdlib -Wl,-soname,libc.so.6 libc.c -o "$stubs/libc.so"
	"$1" -shared -w -fno-builtin -nostdlib -DDL -Wl,-soname,libdl.so.2 libc.c -o "$stubs/libdl.so"
	"$1" -std=gnu11 -Os -Wall -Wextra -Werror -U_FORTIFY_SOURCE -fno-stack-protector -fno-asynchronous-unwind-tables -no-pie -fno-pie \
		-nodefaultlibs -s -Wl,--build-id=none -Wl,-z,noseparate-code reader.c -o "$2" -L "$stubs" -ldl -lc
	rm -r "$stubs"
}
if [ "${1:-}" = --check ]; then
	made=$(mktemp)
	trap 'rm -f "$made"' EXIT
	for machine in x86_64:amd64 aarch64:arm64; do
		cc=${machine%:*}-linux-gnu-gcc
		command -v "$cc" >/dev/null || { echo "$cc is missing"; exit 77; }
		grep -qxF "$(compiler "$cc")" "$noted" || { echo "this is $(compiler "$cc"), which did not build the programs"; exit 77; }
		build "$cc" "$made"
		cmp "$made" "../object/reader_${machine#*:}"
	done
	exit
fi
build x86_64-linux-gnu-gcc ../object/reader_amd64
build aarch64-linux-gnu-gcc ../object/reader_arm64
{ cat reader.c libc.c | sha256sum | cut -d ' ' -f 1; compiler x86_64-linux-gnu-gcc; compiler aarch64-linux-gnu-gcc; } >"$noted"
