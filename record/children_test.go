package record

import (
	"slices"
	"testing"
)

// TestChildren records processes that are started in all ways.
func TestChildren(t *testing.T) {
	t.Parallel()
	r := program{code: `
import multiprocessing, os, subprocess, sys
def work():
    import torch
    torch.cuda.allocate(1000)
if __name__ == "__main__":
    for method in ("spawn", "fork", "forkserver"):
        p = multiprocessing.get_context(method).Process(target=work, name=method + "-worker")
        p.start()
        p.join()
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit()
    os.waitpid(pid, 0)
    subprocess.run([sys.executable, "-c", "import torch; torch.cuda.allocate(1)"])
    print("done")
`}.run(t)
	r.silent(t, 0, "done\n")
	var roles []string
	for _, p := range r.Processes {
		roles = append(roles, p.Role)
		if !slices.Equal(reasons(p), []string{"exit"}) || !p.Ended {
			t.Errorf("%s: snapshots for %v, ended %v", p.Role, reasons(p), p.Ended)
		}
	}
	slices.Sort(roles)
	if want := []string{"fork-worker", "forkserver-worker", "python", "spawn-worker", "train"}; !slices.Equal(roles, want) {
		t.Errorf("recorded %v, want %v; notes %v", roles, want, r.Notes)
	}
}

// TestForkOfOneWithDevice leaves a child alone whose parent has the device.
func TestForkOfOneWithDevice(t *testing.T) {
	t.Parallel()
	r := program{code: "import family\nfamily.fork()\n", options: Options{EverySteps: 1}, modules: map[string]string{"family.py": `
import os, sys, torch
def fork():
    torch.cuda.allocate(1000)
    for i in range(3):
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        os.waitpid(pid, 0)
        torch.optim.SGD().step()
`}}.run(t)
	r.silent(t, 0, "")
	if p := r.one(t); !slices.Equal(reasons(p), []string{"step", "exit"}) {
		t.Errorf("snapshots for %v", reasons(p))
	}
}

// TestForkWhileWriting has a child go on that was forked while a snapshot was being
// written: it must not keep others from writing, nor the parent's socket open.
func TestForkWhileWriting(t *testing.T) {
	t.Parallel()
	r := program{code: "import family\nfamily.fork()\n", modules: map[string]string{"family.py": `
import fcntl, os, socket, sys, torch
import strandline, strandline._control, strandline._pickle
write = strandline._pickle.write
gate, ready = os.pipe(), os.pipe()
def forking(snapshot, folder, name):
    global pid
    pid = os.fork()
    if pid == 0:
        os.close(gate[1])
        os.write(ready[1], b".")
        os.read(gate[0], 1)  # until the parent has ended
        os._exit(0)
    os.read(ready[0], 1)  # until what runs in the child after a fork has run
    return write(snapshot, folder, name)
def fork():
    torch.cuda.allocate(1000)
    import strandline._recorder as recorder
    strandline._pickle.write = forking
    strandline.snapshot()
    strandline._pickle.write = write
    lock = os.open(os.environ["RECORDING"] + "/.strandline/lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)
    strandline.stop()
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(strandline._control.address(os.getpid()))
        print("the child keeps the socket")
    except ConnectionRefusedError:
        pass
    os.close(gate[1])
    os.waitpid(pid, 0)
`}}.run(t)
	r.silent(t, 0, "")
	if p := r.one(t); !slices.Equal(reasons(p), []string{"call"}) {
		t.Errorf("snapshots for %v; notes %v", reasons(p), r.Notes)
	}
}
