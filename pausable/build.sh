#!/bin/sh
# Builds the libraries that a program loads to have its memory paused, and notes what they
# were built from. They are linked with nothing, so that they need no version of the C
# library: the process that loads them has one. Functions are bound when they are called, as
# a shell in which an old C library has no dlopen may be started with the library preloaded.
# With --check it changes nothing and reports whether the committed libraries are what these
# sources make; exit status 77 means that a compiler is missing or is not the one that built them.
set -eu
cd "$(dirname "$0")/c"
noted=../object/library.txt
compiler() { "$1" --version 2>/dev/null | head -n 1; }
# Without these, atomic operations of arm64 are functions of GCC's, which ask the C library
# what the processor can do.
flags() { case $1 in aarch64*) echo -mno-outline-atomics ;; esac; }
build() { # COMPILER LIBRARY FLAGS...
	cc=$1 library=$2
	shift 2
	"$cc" "$@" -std=c11 -D_GNU_SOURCE -Os -Wall -Wextra -Werror -U_FORTIFY_SOURCE -fno-stack-protector -fno-asynchronous-unwind-tables \
		-fPIC -fvisibility=hidden -shared -nostdlib -s -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,relro -Wl,-z,lazy \
		-Wl,-soname,libstrandline-mem.so -Wl,--as-needed ./*.c -o "$library"
}
if [ "${1:-}" = --check ]; then
	made=$(mktemp)
	trap 'rm -f "$made"' EXIT
	for machine in x86_64:amd64 aarch64:arm64; do
		cc=${machine%:*}-linux-gnu-gcc
		command -v "$cc" >/dev/null || { echo "$cc is missing"; exit 77; }
		grep -qxF "$(compiler "$cc")" "$noted" || { echo "this is $(compiler "$cc"), which did not build the libraries"; exit 77; }
		# shellcheck disable=SC2046 # a list
		build "$cc" "$made" $(flags "$cc")
		cmp "$made" "../object/library_${machine#*:}.so"
	done
	exit
fi
build x86_64-linux-gnu-gcc ../object/library_amd64.so
build aarch64-linux-gnu-gcc ../object/library_arm64.so $(flags aarch64-linux-gnu-gcc)
{ cat ./*.h ./*.c | sha256sum | cut -d ' ' -f 1; compiler x86_64-linux-gnu-gcc; compiler aarch64-linux-gnu-gcc; } >"$noted"
