package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/host/bpf"
	"strandline/units"
)

// check is the result of one check.
type check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Told string `json:"told"`
	Do   string `json:"do,omitempty"` // about it, if not OK
}

type doctorReport struct {
	Schema string  `json:"schema"`
	Checks []check `json:"checks"`
}

func newDoctor(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Check what works on this machine, and how to fix what does not",
		Long:    "Check what works on this machine, and how to fix what does not.",
		Example: "  strandline doctor",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			doc := doctorReport{"strandline.doctor/1", checks(g.env)}
			return g.print(doc, func(w io.Writer, _ report.Style) {
				for _, c := range doc.Checks {
					mark := "ok  "
					if !c.OK {
						mark = "no  "
					}
					fmt.Fprintf(w, "%s%-22s %s\n", mark, c.What, c.Told)
					if c.Do != "" {
						fmt.Fprintf(w, "    %-22s %s\n", "", c.Do)
					}
				}
			})
		},
	}
}

func checks(env *Env) []check {
	out := []check{
		{What: "read snapshots", OK: true, Told: "pickle protocols 0 to 5, JSON, gzip, zstd; PyTorch 1.13 to 2.15"},
		{What: "platform", OK: true, Told: runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version()},
	}
	memory := check{What: "memory", OK: true, Told: "no limit is set for strandline itself; it needs up to about 100 bytes for each event of a file"}
	if n := debug.SetMemoryLimit(-1); n != 1<<63-1 {
		memory.Told = fmt.Sprintf("GOMEMLIMIT is %s; a snapshot that needs more may not fit", units.Bytes(n))
	}
	out = append(out, memory)
	colour := check{What: "terminal", OK: env.StdoutTerminal, Told: "output is a terminal"}
	if !env.StdoutTerminal {
		colour = check{What: "terminal", OK: true, Told: "output is not a terminal: plain text without colour"}
	}
	out = append(out, colour)
	temp := check{What: "temporary files", OK: true, Told: os.TempDir()}
	if f, err := os.CreateTemp("", "strandline-doctor"); err != nil {
		temp = check{"temporary files", false, err.Error(), "set TMPDIR to a writable folder"}
	} else {
		f.Close()
		os.Remove(f.Name())
	}
	return append(out, temp, tracing())
}

// tracing reports which backend trace gets here, and how to get a better one.
func tracing() check {
	t, err := bpf.Start()
	if err == nil {
		t.Close()
		return check{What: "trace", OK: true, Told: "all calls that map memory, with stacks, also of running processes (BPF)"}
	}
	c := check{What: "trace", Told: "commands that it starts (ptrace, slower); running processes are only polled, which does not show why they grow: " + err.Error()}
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		c.Told, c.Do = "only polling: "+err.Error(), "trace on a machine with Linux on x86-64"
	case os.Geteuid() != 0:
		c.Do = "run it as root (sudo), or give strandline the capabilities: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_sys_admin+ep strandline"
	case !exists("/sys/kernel/btf/vmlinux"):
		c.Do = "the kernel is built without CONFIG_DEBUG_INFO_BTF; use one that has it"
	default:
		c.Do = "in a container, give it --privileged, or run strandline on the host"
	}
	return c
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
