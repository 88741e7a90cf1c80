#!/bin/sh
# Make an environment with PyTorch on the rig's device and the frameworks that run.py tries:
#   setup.sh DIR          takes some minutes and 4 GB
set -eu
src=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
"$src/../pytorch/setup.sh" "$1" 2.11
python=$1/python/bin/python
"$python" -c 'import importlib.metadata as m; print("torch==" + m.version("torch"))' >"$1/constraint.txt"
install() { "$python" -m pip install -q --disable-pip-version-check --no-compile -c "$dir/constraint.txt" "$@"; }
dir=$1
# Their requirements name NVIDIA's libraries, which the rig replaces.
install --no-deps transformers accelerate peft trl lightning pytorch-lightning torchmetrics \
  lightning-utilities datasets deepspeed diffusers
install huggingface-hub tokenizers safetensors regex pyyaml tqdm packaging psutil requests pyarrow \
  pandas dill xxhash multiprocess hjson msgpack ninja py-cpuinfo pydantic einops aiohttp fsspec \
  filelock jinja2 typing_extensions setuptools rich pillow importlib_metadata
python3 -m venv "$dir/jax"
"$dir/jax/bin/python" -m pip install -q --disable-pip-version-check jax
