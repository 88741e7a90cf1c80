#!/bin/sh
# Make an environment with a release of PyTorch that runs without a GPU:
#   setup.sh DIR VERSION          such as: setup.sh /tmp/torch-2.15 2.15
# DIR/python gets a Python with PyTorch's wheel from PyPI, and DIR/cuda substitutes of
# NVIDIA's libraries, which are never downloaded. Takes about a minute and 2 GB.
# PYTHON names the interpreter (python3), which the release must have a wheel for.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: $0 DIR VERSION" >&2; exit 2; }
case $2 in
*.*.*) version=$2 ;;
*) version="$2.*" ;;
esac
fail() { echo "setup.sh: PyTorch $version: $*" >&2; exit 1; }

mkdir -p "$1"
dir=$(cd "$1" && pwd)
room=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$room" -ge 4 ] || fail "no room: $dir has $room GB, and 4 are needed"
python=$dir/python/bin/python
[ -x "$python" ] || ${PYTHON:-python3} -m venv "$dir/python" || fail "no Python with venv: set PYTHON"
if ! "$python" -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; then
  "$python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-compile --no-deps \
    "torch==$version" >"$dir/pip.log" 2>&1 ||
    fail "pip found no wheel for $("$python" -V): $(grep -m 1 ERROR "$dir/pip.log")"
  "$python" -m pip install -q --disable-pip-version-check --no-compile numpy \
    $("$python" "$src/fake/requirements.py") >>"$dir/pip.log" 2>&1 ||
    fail "a dependency cannot be installed: $(grep -m 1 ERROR "$dir/pip.log")"
fi
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" "$src/fake/substitutes.py" "$site" "$dir/cuda" || fail "the substitutes of its libraries do not build"
"$src/run.sh" "$dir" "$src/workloads/check.py" || fail "it does not start"
