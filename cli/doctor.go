package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/host/calls/bpf"
	"strandline/internal/safefile"
	"strandline/units"
)

func newDoctor(g *globals) *cobra.Command {
	pid, forIssue := 0, false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, and say how to fix it",
		Long: `Check which features work on this machine, and how to fix the others.

With --pid, check how the PyTorch memory of a running process can be recorded.

--report prints the same for an issue, as Markdown, without names of people,
machines and home folders.`,
		Example: "  strandline doctor\n  sudo strandline doctor --pid 4242\n  strandline doctor --report",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			doc := api.Doctor{Schema: api.DoctorSchema}
			if c.Flags().Changed("pid") {
				doc.Checks, err = ways(c.Context(), pid)
			} else {
				doc.Checks = checks(g.env)
			}
			if err != nil {
				return err
			}
			if forIssue {
				_, err := io.WriteString(g.env.stdout, g.doctorReport(doc.Checks))
				return err
			}
			return g.print(doc, func(w io.Writer, _ report.Style) {
				for _, c := range doc.Checks {
					mark := "ok  "
					if !c.OK {
						mark = "no  "
					}
					fmt.Fprintf(w, "%s%-22s %s\n", mark, c.What, c.Detail)
					if c.Do != "" {
						fmt.Fprintf(w, "    %-22s %s\n", "", c.Do)
					}
				}
			})
		},
	}
	c.Flags().IntVar(&pid, "pid", 0, "check the process `N`")
	c.Flags().BoolVar(&forIssue, "report", false, "print a report for an issue, without personal names")
	return c
}

func checks(env *Env) []api.Check {
	out := []api.Check{
		{What: "read snapshots", OK: true, Detail: "pickle protocols 0 to 5, JSON, gzip, zstd; PyTorch 1.13 to 2.15"},
		{What: "platform", OK: true, Detail: runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version()},
	}
	memory := api.Check{What: "memory", OK: true, Detail: "no limit is set for strandline itself; it needs up to about 100 bytes for each event of a file"}
	if n := debug.SetMemoryLimit(-1); n != 1<<63-1 {
		memory.Detail = fmt.Sprintf("GOMEMLIMIT is %s; a snapshot that needs more may not fit", units.Bytes(n))
	}
	out = append(out, memory)
	color := api.Check{What: "terminal", OK: env.stdoutTerminal, Detail: "output is a terminal"}
	if !env.stdoutTerminal {
		color = api.Check{What: "terminal", OK: true, Detail: "output is not a terminal: plain text without color"}
	}
	out = append(out, color)
	temp := api.Check{What: "temporary files", OK: true, Detail: os.TempDir()}
	if dir, err := safefile.MakeTemp("strandline-doctor"); err != nil {
		temp = api.Check{What: "temporary files", OK: false, Detail: err.Error(), Do: "set TMPDIR to a writable folder"}
	} else {
		dir.Remove()
	}
	return append(out, temp, tracing())
}

// tracing reports which backend trace uses here, and how to get a better one.
func tracing() api.Check {
	t, err := bpf.Start()
	if err == nil {
		t.Close()
		return api.Check{What: "trace", OK: true, Detail: "all calls that map memory, with stacks, also of running processes (BPF)"}
	}
	c := api.Check{What: "trace", Detail: "commands that it starts (ptrace, slower); running processes are only polled, which does not show why they grow: " + err.Error()}
	if runtime.GOARCH == "arm64" {
		c.Detail = "only polling, which does not show why processes grow; ptrace is for x86-64: " + err.Error()
	}
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64":
		c.Detail, c.Do = "only polling: "+err.Error(), "trace on a machine with Linux on x86-64 or arm64"
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
