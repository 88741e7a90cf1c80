#!/bin/sh
# Builds the programs that load the driver's library, and notes what they were built
# from. They need no version of the C library: see c/libc.c. For --check see
# crossbuild.sh.
set -eu
cd "$(dirname "$0")/c"
noted=../object/reader.txt
. ../../../../internal/crossbuild.sh
build() { # COMPILER PROGRAM
	stubs=$(mktemp -d)
	"$1" -shared -w -fno-builtin -nostdlib -Wl,-soname,libc.so.6 libc.c -o "$stubs/libc.so"
	"$1" -shared -w -fno-builtin -nostdlib -DDL -Wl,-soname,libdl.so.2 libc.c -o "$stubs/libdl.so"
	"$1" -std=gnu11 -Os -Wall -Wextra -Werror -U_FORTIFY_SOURCE -fno-stack-protector -fno-asynchronous-unwind-tables -no-pie -fno-pie \
		-nodefaultlibs -s -Wl,--build-id=none -Wl,-z,noseparate-code reader.c -o "$2" -L "$stubs" -ldl -lc
	rm -r "$stubs"
}
object() { echo "../object/reader_$1"; }
sources() { cat reader.c libc.c; }
crossbuild "$@"
