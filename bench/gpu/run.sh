#!/bin/sh
# Tries strandline on a real GPU, in at most 8 minutes: run.sh [OUT] [STRANDLINE]
#
# It needs Python with PyTorch, and the static binary (STRANDLINE, or the variable of that
# name). It fetches nothing. Some steps need root. It prints a row for each result, writes
# them to OUT/results.tsv and OUT/results.json, and keeps what was recorded, if it is small,
# in OUT/recordings.tar.gz. OUT may be given by the variable of that name, too.
#
# Where there is no GPU, it runs on the simulated device of a rig, with its run.sh:
#
#     FAKE_SHARED=/rig/out/shared FAKE_CUDA_TOTAL_MEM=81920m FAKE_CUDA_CONTEXT_MEM=400m \
#         bench/pausable/run.sh RIG_RUN RIG bench/gpu/check.py --simulated
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-${OUT:-out}}
binary=${2:-${STRANDLINE:-strandline}}
exec python3 -u "$here/check.py" --out "$out" --strandline "$binary"
