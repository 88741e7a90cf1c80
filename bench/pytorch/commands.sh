#!/bin/sh
# Run the steps of bench/gpu that compare commands with PyTorch, without a GPU:
#   commands.sh DIR OUT STRANDLINE [STEP,...]
# DIR is an environment of setup.sh. The results are OUT/results.json. Needs gcc and root.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 DIR OUT STRANDLINE [STEP,...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
lib=$(mktemp -d)
trap 'rm -rf "$lib"' EXIT
# The driver gets what pausable memory needs, and its devices are those of all processes.
sed 's/libcuda\.so\.1/libcuda.so.0/' "$dir/cuda/libcuda.so.1" >"$lib/libcuda.so.0"
gcc -O2 -shared -fPIC -Wl,-soname,libcuda.so.1 -Wl,--no-as-needed "$here/../pausable/driver.c" \
  "$lib/libcuda.so.0" -Wl,-rpath,'$ORIGIN' -o "$lib/libcuda.so.1" -ldl
gcc -DNVML -O2 -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 "$here/../pausable/driver.c" -o "$lib/libnvidia-ml.so.1"
export LD_LIBRARY_PATH="$lib:$dir/cuda" PATH="$here/../pausable:$PATH" PYTHONDONTWRITEBYTECODE=1
export FAKE_SHARED="$lib/shared" FAKE_CUDA_TOTAL_MEM=81920m FAKE_CUDA_CONTEXT_MEM=400m FAKE_CUDA_COPY_LIMIT=64g
export OMP_NUM_THREADS=1 TORCH_SYMBOLIZE_MODE=dladdr
"$dir/python/bin/python" "$here/../gpu/check.py" --simulated --seconds 1800 --out "$2" --strandline "$3" \
  --steps "${4:-record,outside,trace,watch,pause_torch,pause_preload,pinned}"
