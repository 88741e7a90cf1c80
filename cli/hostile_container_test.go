//go:build linux && amd64

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"strandline/host/store/recording"
	"strandline/internal/test/live"
)

// insideContainer runs in a new pid namespace, as in a container:
// processes have other numbers there than the kernel's own.
func insideContainer(t *testing.T, exe string) {
	needBPF(t)
	apart := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command(apart[0], append(apart[1:], "true")...).CombinedOutput(); err != nil {
		live.Missing(t, "namespaces", fmt.Sprintf("%v: %s", err, out))
	}
	parts := map[string]func(*testing.T){}
	for name, c := range map[string]struct{ before, command []string }{
		"in a namespace of a namespace": {append(slices.Clone(apart), apart...), []string{exe, "grow"}},
		"a command in one of its own":   {apart, append(slices.Clone(apart), exe, "grow")},
		"children":                      {apart, []string{exe, "chain", "3"}},
	} {
		parts[name] = func(t *testing.T) {
			stdout, stderr, _ := asProgram(slices.Clone(c.before), append([]string{"trace", "--json", "--rung", "bpf", "--duration", "2s", "--"}, c.command...)...)
			var doc recording.Document
			if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			if got := held(&doc, "grow"); got < 10*151552 || got%151552 != 0 {
				t.Errorf("%d bytes are held by grow: %s", got, stderr)
			}
		}
	}
	parts["without its proc"] = func(t *testing.T) {
		if _, stderr, code := asProgram(apart[:4:4], "trace", "--", exe, "grow"); code != exitUsage || !strings.Contains(stderr, "mount -t proc") {
			t.Errorf("exit status %d: %s", code, stderr)
		}
		pid, _ := live.Start(t, exe, "grow") // by its number in that /proc
		stdout, stderr, _ := asProgram(apart[:4:4], "trace", "--json", "--duration", "1s", "--pid", strconv.Itoa(pid))
		var doc recording.Document
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil || held(&doc, "grow") < 10*151552 {
			t.Errorf("%v: %s", err, stderr)
		}
	}
	together(t, parts)
}

// outsideContainer traces a process in other namespaces, whose files are
// at other paths than it sees.
func outsideContainer(t *testing.T, exe string) {
	needBPF(t)
	root := t.TempDir()
	place := func(from, to string) {
		to = filepath.Join(root, to)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, must(os.ReadFile(from)), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	place(exe, "/app/serve")
	loader, err := exec.Command("ldd", exe).Output()
	if err != nil {
		live.Missing(t, "ldd", err)
	}
	for _, word := range strings.Fields(string(loader)) {
		if filepath.IsAbs(word) {
			place(word, word)
		}
	}
	c := exec.Command("/app/serve", "grow")
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{
		Chroot: root, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := c.Start(); err != nil {
		live.Missing(t, "namespaces", err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	doc, _ := judged(t, "--pid", strconv.Itoa(c.Process.Pid), "--duration", "2s")
	top := doc.Stacks[0]
	if got := held(&doc, "grow"); got < 10*151552 || !top.Complete || !slices.ContainsFunc(top.Frames, func(f recording.Frame) bool { return f.Object != nil && filepath.Base(*f.Object) == "serve" }) {
		t.Errorf("%d bytes are held by grow; %+v", got, top)
	}
	if stdout, stderr, code := run("hooks", "--pid", strconv.Itoa(c.Process.Pid)); code != 0 || strings.Contains(stdout, "cannot be read") {
		t.Errorf("exit status %d of hooks: %s%s", code, stdout, stderr)
	}
}
