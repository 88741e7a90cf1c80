#!/bin/sh
# Builds the BPF programs from their sources and notes what they were built from.
# With --check it changes nothing and tells whether the committed object is what
# these sources make; 77 says that the compiler is not the one that built it.
set -eu
cd "$(dirname "$0")/c"
compiler=$(clang --version 2>/dev/null | head -n 1) || true
sources() { cat kernel.h mappings.c driver.c | sha256sum | cut -d ' ' -f 1; }
build() {
	clang -target bpf -mcpu=v3 -O2 -g -Wall -Werror -fdebug-compilation-dir=. -c mappings.c -o "$1"
	llvm-strip -g "$1"
}
if [ "${1:-}" = --check ]; then
	[ -n "$compiler" ] && command -v llvm-strip >/dev/null || { echo "clang or llvm-strip is missing"; exit 77; }
	grep -qxF "$compiler" ../object/mappings.txt || { echo "this is $compiler; the object was built with $(sed -n 2p ../object/mappings.txt)"; exit 77; }
	made=$(mktemp)
	trap 'rm -f "$made"' EXIT
	build "$made"
	cmp "$made" ../object/mappings.o
	exit
fi
build ../object/mappings.o
{ sources; echo "$compiler"; } >../object/mappings.txt
