#!/bin/sh
# Builds the libraries that sample malloc, and notes what they were built from. They are
# linked with nothing, so that they need no version of the C library: the process that
# loads them has one. For --check see crossbuild.sh.
set -eu
cd "$(dirname "$0")/c"
noted=../object/library.txt
. ../../../../internal/crossbuild.sh
# Without these, atomic operations of arm64 are functions of GCC's, which ask the C library
# what the processor can do.
flags() { case $1 in aarch64*) echo -mno-outline-atomics ;; esac; }
build() { # COMPILER LIBRARY
	# shellcheck disable=SC2046 # a list
	"$1" $(flags "$1") -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -U_FORTIFY_SOURCE -fno-stack-protector \
		-fno-builtin -fno-strict-aliasing -fno-omit-frame-pointer -fPIC -fvisibility=hidden -shared -nostdlib -s -Wl,--build-id=none \
		-Wl,-z,noseparate-code -Wl,-z,relro -Wl,-z,lazy -Wl,-soname,libstrandline-malloc.so -Wl,--as-needed ./*.c -o "$2"
}
object() { echo "../object/library_$1.so"; }
sources() { cat ./*.h ./*.c; }
crossbuild "$@"
