package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/host/code/image"
	"strandline/host/proc/hooks"
	"strandline/host/proc/procfs"
)

func newHooks(g *globals) *cobra.Command {
	var pid int
	c := &cobra.Command{
		Use:   "hooks --pid N",
		Short: "Find functions of a process that a library replaced",
		Long: `Compare the code and offset tables of a running process with its files, and name
each function that leads elsewhere, with its target. Libraries that hook memory
functions are named, with the versions known to leak. The process is only read,
neither stopped nor changed.

It needs Linux and permission to read the process: root, or the same user where
the system allows that.`,
		Example: "  sudo strandline hooks --pid 4242\n  sudo strandline hooks --pid 4242 --json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			doc, err := hooksOf(pid)
			if err != nil {
				return err
			}
			if err := g.print(doc, func(w io.Writer, s report.Style) { doc.Text(w, s) }); err != nil {
				return err
			}
			if doc.Leaking() {
				return exit(exitProblem)
			}
			return nil
		},
	}
	c.Flags().IntVar(&pid, "pid", 0, "the process `N`")
	c.MarkFlagRequired("pid")
	return c
}

func hooksOf(pid int) (*report.Hooks, error) {
	p, err := reachable(pid)
	if err != nil {
		return nil, err
	}
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(p, files)
	if err != nil {
		return nil, reach(pid, err)
	}
	defer im.Close()
	pages, err := p.Pages()
	if err != nil {
		return nil, reach(pid, err)
	}
	defer pages.Close()
	found, err := hooks.Find(im, pages)
	if err != nil {
		return nil, reach(pid, err)
	}
	return report.NewHooks(int(p), found), nil
}

func onLinux() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("this needs Linux; this machine runs %s", runtime.GOOS)
	}
	return nil
}

// reachable returns the process of an ID, which can be that of one of its threads.
// It is an error if the process cannot be examined.
func reachable(pid int) (procfs.Process, error) {
	p := procfs.Process(pid)
	if err := onLinux(); err != nil {
		return p, err
	}
	st, err := p.Status()
	if err == nil && st.Group > 0 && st.Group != pid {
		p = procfs.Process(st.Group)
		st, err = p.Status()
	}
	switch {
	case err != nil:
		return p, reach(pid, err)
	case strings.HasPrefix(st.State, "Z"), strings.HasPrefix(st.State, "X"):
		return p, fmt.Errorf("process %d (%s) has ended; its parent, %d, has not reaped it yet", p, st.Name, st.Parent)
	case st.VMSize == 0:
		return p, fmt.Errorf("process %d (%s) is a kernel thread, which has no memory of its own", p, st.Name)
	}
	return p, nil
}

// reach explains why a process cannot be read.
func reach(pid int, err error) error {
	switch {
	case procfs.HasExited(err):
		return fmt.Errorf("there is no process %d", pid)
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() == 0:
		return fmt.Errorf("process %d cannot be read, even by root: a security module or the container forbids it (it needs CAP_SYS_PTRACE)", pid)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("process %d cannot be read: run as root, or as its user where kernel.yama.ptrace_scope is 0", pid)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}
