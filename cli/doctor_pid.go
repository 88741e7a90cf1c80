package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/host/calls/bpf"
	"strandline/host/proc/procfs"
	"strandline/record"
	"strandline/run/outside"
)

// ways lists how the memory of a running process can be recorded.
func ways(ctx context.Context, pid int) ([]api.Check, error) {
	p, err := reachable(pid)
	if err != nil {
		return nil, err
	}
	env, _ := p.Environ()
	offer, why := outside.Examine(int(p))
	return []api.Check{fromOutside(int(p), offer, why), bySocket(ctx, int(p)), byKineto(env), byDebugger(p, offer.Minor, env)}, nil
}

// fromOutside reports whether the process can be recorded by probes of the kernel.
func fromOutside(pid int, o outside.Offer, why error) api.Check {
	c := api.Check{What: "from outside"}
	if why != nil {
		c.Detail = why.Error()
		return c
	}
	r, err := bpf.StartRequests()
	if err != nil {
		c.Detail = err.Error()
		c.Do = "run strandline as root, or give it CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"
		return c
	}
	r.Close()
	c.OK = true
	c.Detail = "PyTorch"
	if o.Version != "" {
		c.Detail += " " + o.Version
	}
	if o.Minor > 0 {
		c.Detail += fmt.Sprintf(", stacks of Python 3.%d", o.Minor)
	} else {
		c.Detail += ", without stacks of Python"
	}
	if o.State {
		c.Detail += ", with earlier allocations"
	} else {
		c.Detail += "; earlier allocations are unreadable"
	}
	if o.Untried != "" {
		c.Detail += "; " + o.Untried
	}
	c.Do = fmt.Sprintf("strandline record --pid %d --duration 60s", pid)
	return c
}

// bySocket reports whether the process was started by strandline record, or calls
// its module.
func bySocket(ctx context.Context, pid int) api.Check {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	control, err := record.Dial(ctx, pid)
	switch {
	case errors.Is(err, record.ErrNotRecorded):
		return api.Check{What: "control socket", Detail: "the process was not started by strandline record"}
	case err != nil:
		return api.Check{What: "control socket", Detail: err.Error()}
	}
	control.Close()
	return api.Check{What: "control socket", OK: true, Detail: "the process is recorded by strandline already", Do: fmt.Sprintf("strandline snapshot --pid %d", pid)}
}

// byKineto reports whether the process asks a daemon of PyTorch's profiler what to do.
func byKineto(env map[string]string) api.Check {
	c := api.Check{What: "Kineto's daemon", Detail: "the process was not started with KINETO_USE_DAEMON=1"}
	if on, err := strconv.ParseBool(env["KINETO_USE_DAEMON"]); err == nil && on {
		c.OK = true
		c.Detail = "a daemon such as dynolog can ask for a snapshot (PyTorch 2.8 or newer). From then on a thread of the process keeps one core busy"
	}
	return c
}

// firstRemote is the first version of Python 3 that runs a file in another process.
const firstRemote = 14

// byDebugger reports whether Python allows others to run code in the process.
func byDebugger(p procfs.Process, minor int, env map[string]string) api.Check {
	c := api.Check{What: "Python's remote exec"}
	_, off := env["PYTHON_DISABLE_REMOTE_DEBUG"]
	args := strings.Join(p.Args(), " ")
	switch {
	case minor == 0:
		c.Detail = "no interpreter of Python was found in the process"
	case minor < firstRemote:
		c.Detail = fmt.Sprintf("needs Python 3.%d or newer; this is 3.%d", firstRemote, minor)
	case off || strings.Contains(args, "disable-remote-debug") || strings.Contains(args, "disable_remote_debug"):
		c.Detail = "the process was started with remote debugging disabled"
	default:
		c.OK = true
		c.Detail = "sys.remote_exec can run code in the process, such as a call of strandline.start (`strandline help guide record`); that changes it"
		c.Do = fmt.Sprintf("python3.%d -c 'import sys; sys.remote_exec(%d, \"/path/of/code.py\")'", minor, int(p))
	}
	return c
}
