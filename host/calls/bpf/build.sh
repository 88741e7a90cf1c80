#!/bin/sh
# Builds the BPF programs from their sources and notes what they were built from.
# With --check it changes nothing and reports whether the committed object is what
# these sources make; exit status 77 means that the compiler is not the one that built it.
set -eu
cd "$(dirname "$0")/c"
compiler=$(clang --version 2>/dev/null | head -n 1) || true
sources() { cat kernel.h events.h samples.h mappings.c driver.c requests.c | sha256sum | cut -d ' ' -f 1; }
build() { # OBJECT MACHINE
	clang -target bpf "-D__TARGET_ARCH_$2" -mcpu=v3 -O2 -g -Wall -Werror -fdebug-compilation-dir=. -c mappings.c -o "$1"
	llvm-strip -g "$1"
}
if [ "${1:-}" = --check ]; then
	[ -n "$compiler" ] && command -v llvm-strip >/dev/null || { echo "clang or llvm-strip is missing"; exit 77; }
	grep -qxF "$compiler" ../object/mappings.txt || { echo "this is $compiler; the object was built with $(sed -n 2p ../object/mappings.txt)"; exit 77; }
	made=$(mktemp)
	trap 'rm -f "$made"' EXIT
	build "$made" x86 && gzip -dc ../object/mappings.o.gz | cmp "$made"
	build "$made" arm64 && gzip -dc ../object/mappings_arm64.o.gz | cmp "$made"
	exit
fi
build ../object/mappings.o x86
build ../object/mappings_arm64.o arm64
gzip -n9f ../object/*.o
{ sources; echo "$compiler"; } >../object/mappings.txt
