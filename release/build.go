package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"strandline/internal/licenses"
)

// command runs a program in a folder and returns what it printed.
func command(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), env...), os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// checkOut clones a repository, so that nothing which is not committed is built, and the go
// command finds the commit and its tag in any kind of checkout.
func checkOut(repository, source string) (*release, error) {
	top, err := command(repository, nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	changed, err := command(top, nil, "git", "status", "--porcelain", "--untracked-files=no", "--", ":!release/go.work.sum")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		return nil, fmt.Errorf("commit these changes first:\n%s", changed)
	}
	if _, err := command(top, nil, "git", "clone", "--quiet", top, source); err != nil {
		return nil, err
	}
	out, err := command(source, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	r := &release{source: source}
	var seconds int64
	if _, err := fmt.Sscan(out, &r.revision, &seconds); err != nil {
		return nil, fmt.Errorf("git log printed %q: %w", out, err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	return r, nil
}

// maxProgram is the size of a program, in bytes, that none may have.
const maxProgram = 25e6

// build makes the program from its source.
func (t target) build(source, path, flag string) ([]byte, error) {
	_, err := command(source,
		[]string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOOS=" + t.system, "GOARCH=" + t.arch},
		"go", "build", flag, "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/strandline")
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if len(program) >= maxProgram {
		err = fmt.Errorf("the program has %.2f MB, and must have less than %.0f", float64(len(program))/1e6, maxProgram/1e6)
	}
	return program, err
}

// compile builds the program, checks that it names its commit and has no part that the
// notices lack, and takes the release's version from it: the tag, or what the go command
// makes of a commit between two tags.
func (r *release) compile(t target) ([]byte, error) {
	program, err := t.build(r.source, r.source+"-program", "-buildvcs=true")
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	version, ok := strings.CutPrefix(info.Main.Version, "v")
	if !ok || r.version != "" && r.version != version || strings.HasSuffix(version, "+dirty") {
		return nil, fmt.Errorf("the go command gives the program the version %q", info.Main.Version)
	}
	r.version = version
	known := map[string]bool{}
	for _, n := range licenses.Notices() {
		known[n.Name+" "+n.Version] = true
	}
	for _, m := range info.Deps {
		if !known[m.Path+" "+m.Version] {
			return nil, fmt.Errorf("%s %s is in the program and has no notice", m.Path, m.Version)
		}
	}
	return program, nil
}
