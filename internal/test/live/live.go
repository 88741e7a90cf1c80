// Package live serves tests that look at processes from outside: it compiles small
// programs, starts and settles them, and skips tests where the machine lacks what they
// need. Package leaks has programs that grow in a known way.
package live

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Build compiles a program in C, and before it the libraries that it is linked
// with. It skips the test if no compiler is available.
func Build(t testing.TB, source string, libraries map[string]string, flags ...string) (exe string) {
	t.Helper()
	compiler := "gcc"
	if strings.HasPrefix(source, "// C++") {
		compiler = "g++"
	}
	Tool(t, compiler)
	dir := t.TempDir()
	links := []string{"-L" + dir, "-Wl,-rpath," + dir, "-Wl,-z,lazy", "-Wl,--no-as-needed"}
	for name, text := range libraries {
		compile(t, "gcc", dir, name+".c", text, "-shared", "-fPIC", "-o", filepath.Join(dir, "lib"+name+".so"))
		links = append(links, "-l"+name)
	}
	exe = filepath.Join(dir, "main")
	suffix := map[string]string{"gcc": ".c", "g++": ".cc"}[compiler]
	compile(t, compiler, dir, "main"+suffix, source, append(append(flags, "-o", exe), links...)...)
	return exe
}

func compile(t testing.TB, compiler, dir, name, source string, flags ...string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O2", file}, flags...)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, args, err, out)
	}
}

// Start runs a program until the test ends, and waits for its first line, which
// it returns.
func Start(t testing.TB, name string, args ...string) (pid int, line string) {
	t.Helper()
	pid, line, err := start(t, name, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return pid, line
}

func start(t testing.TB, name string, args ...string) (int, string, error) {
	Waits(t)
	c := exec.Command(name, args...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if err := c.Start(); err != nil {
		return 0, "", err
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, "", fmt.Errorf("it printed nothing: %w", err)
	}
	return c.Process.Pid, strings.TrimSpace(line), nil
}
