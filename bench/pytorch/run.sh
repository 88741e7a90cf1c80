#!/bin/sh
# Run a Python script with the PyTorch that setup.sh put into DIR:
#   run.sh DIR SCRIPT.py [ARGUMENT...]
# FAKE_CUDA_* variables set the device up, see README.md.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 DIR SCRIPT.py [ARGUMENT...]" >&2; exit 2; }
dir=$(cd "$1" && pwd)
shift
export LD_LIBRARY_PATH="$dir/cuda"
export PYTHONDONTWRITEBYTECODE="${PYTHONDONTWRITEBYTECODE-}"
export TORCH_CUDNN_V8_API_DISABLED=1       # the older interface is the one that is there
export TORCH_SYMBOLIZE_MODE="${TORCH_SYMBOLIZE_MODE:-dladdr}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec "$dir/python/bin/python" "$@"
