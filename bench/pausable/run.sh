#!/bin/sh
# Runs a Python script with strandline.pausable and the real PyTorch on the simulated device
# of a rig: run.sh RIG_RUN RIG SCRIPT [ARGS...], with RIG_RUN the rig's own run.sh and RIG its
# folder. HOOK_MODE=preload preloads the library. It needs gcc.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 RIG_RUN RIG SCRIPT [ARGS...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
rig_run=$1 rig=$2 script=$3
shift 3
RIG_OUT=$(mktemp -d)
trap 'rm -rf "$RIG_OUT"' EXIT
export RIG_OUT
# Copies are done in full, and the driver gets what it lacks: see driver.c.
export FAKE_CUDA_COPY_LIMIT="${FAKE_CUDA_COPY_LIMIT:-64g}"
mkdir "$RIG_OUT/lib" "$RIG_OUT/module"
sed 's/libcuda\.so\.1/libcuda.so.0/' "$rig/trixie/opt/fakecuda/libcuda.so.1" >"$RIG_OUT/lib/libcuda.so.0"
gcc -O2 -Wall -Wextra -shared -fPIC -Wl,-soname,libcuda.so.1 -Wl,--no-as-needed "$here/driver.c" \
	"$RIG_OUT/lib/libcuda.so.0" -Wl,-rpath,'$ORIGIN' -o "$RIG_OUT/lib/libcuda.so.1" -ldl
[ -z "${FAKE_SHARED:-}" ] || gcc -DNVML -O2 -Wall -Wextra -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 "$here/driver.c" -o "$RIG_OUT/lib/libnvidia-ml.so.1"
(cd "$here/../.." && CGO_ENABLED=0 go build -o "$RIG_OUT/strandline" ./cmd/strandline)
"$RIG_OUT/strandline" record --module "$RIG_OUT/module"
cp "$here/nvidia-smi" "$(cd "$(dirname "$script")" && pwd)"/*.py "$RIG_OUT"
cat >"$RIG_OUT/begin.py" <<'END'
import os, sys

env = dict(os.environ, LD_LIBRARY_PATH="/rig/out/lib", PYTHONPATH="/rig/out/module")
if env.get("HOOK_MODE") == "preload":
    env["LD_PRELOAD"] = "/rig/out/module/strandline/libstrandline-mem.so"
os.execve(sys.executable, [sys.executable, *sys.argv[1:]], env)
END
"$rig_run" "$rig" "$RIG_OUT/begin.py" "$(basename "$script")" "$@"
[ -z "${KEEP:-}" ] || cp "$RIG_OUT"/*.pausable "$KEEP"
