#!/bin/sh
# Measures what an allocation of pausable memory costs, and how fast it is copied: cost.sh
# [GIB [at-once]], which takes four times as much memory; or as much, at once, where the
# memory of the device is the same piece again and again. It needs gcc.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/null" "$dir/fake"
gib=${1:-1}
flags="-std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -DFAKE_MEMORY=(size_t)(2.0*$gib*(1<<30))"
[ "${2:-}" != at-once ] || flags="$flags -DFAKE_PIECE=(64L<<20)"
driver() { gcc $flags -U_GNU_SOURCE -fPIC -shared -Wl,-soname,libcuda.so.1 "$1" -o "$2/libcuda.so.1" -lpthread; }
driver null.c "$dir/null"
driver ../../pausable/testdata/fake.c "$dir/fake"
# The library is built as it is released.
gcc $flags -Os -DBLOCKS cost.c ../../pausable/c/*.c -o "$dir/blocks" -L"$dir/null" -l:libcuda.so.1 -ldl -lpthread
# All copies are by the C library's memcpy; the compiler's own has another speed.
gcc $flags -Os -fno-builtin cost.c ../../pausable/c/*.c -o "$dir/copies" -L"$dir/fake" -l:libcuda.so.1 -ldl -lpthread
[ "${2:-}" = at-once ] || LD_LIBRARY_PATH=$dir/null "$dir/blocks"
LD_LIBRARY_PATH=$dir/fake "$dir/copies" "$gib"
