// Command release builds what a release of strandline consists of, from the commit that is
// checked out: archives, packages, wheels, images, checksums, a list of their parts.
//
//	go -C release run . -o DIR
//	go -C release run . -o DIR -targets linux/amd64 -home https://github.com/OWNER/strandline
//
// It needs Go, git, and the modules of go.mod. Two builds of one commit by one version of Go
// are equal, byte for byte. Nothing is signed: README.md says how to.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A target is a system and an architecture, as the go command names them.
type target struct{ system, arch string }

func (t target) String() string { return t.system + "/" + t.arch }

// program is the name of the program's file.
func (t target) program() string {
	if t.system == "windows" {
		return "strandline.exe"
	}
	return "strandline"
}

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// A file is one of an archive, a package or a wheel.
type file struct {
	name string // with slashes
	data []byte
	mode fs.FileMode
}

// A release is a commit, and where its files go.
type release struct {
	version  string // without "v"
	revision string
	time     time.Time // of the commit
	source   string    // the folder of a fresh clone
	out      string
	libc     string // a folder with packages of the C library; "" for none
}

func main() {
	out := flag.String("o", "", "the `folder` of the files, which must be empty or new")
	targets := flag.String("targets", allTargets, "the `systems` to build for")
	home := flag.String("home", "", "the `address` of the repository that will have the release, for formulas of Homebrew and Nix")
	libc := flag.String("libc", "", "a `folder` with Debian's libc6_*.deb: images then have a C library, which NVIDIA's needs")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*out, *targets, *home, *libc); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out, names, home, libc string) error {
	if existing, err := os.ReadDir(out); err == nil && len(existing) > 0 {
		return fmt.Errorf("%s is not empty", out)
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "strandline-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r, err := checkOut("..", filepath.Join(work, "source"))
	if err != nil {
		return err
	}
	r.out, r.libc = out, libc
	var targets []target
	for name := range strings.SplitSeq(names, ",") {
		system, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("%q is not a system and an architecture, such as linux/amd64", name)
		}
		began := time.Now()
		targets = append(targets, target{system, arch})
		if err := r.build(target{system, arch}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s: %s\n", name, time.Since(began).Round(time.Second))
	}
	parts, err := r.sbom()
	if err != nil {
		return err
	}
	if err := r.write("strandline_"+r.version+".spdx.json", parts); err != nil {
		return err
	}
	if home != "" {
		if err := r.formulate(home, targets); err != nil {
			return err
		}
	}
	return r.sum()
}

// build makes all files of a target.
func (r *release) build(t target) error {
	program, err := r.compile(t)
	if err != nil {
		return err
	}
	parts, err := r.sbom()
	if err != nil {
		return err
	}
	files, err := r.documents()
	if err != nil {
		return err
	}
	wheel, err := r.wheel(t, program, parts)
	if err != nil {
		return err
	}
	errs := []error{
		r.archive(t, program, files),
		r.write(wheel.name, wheel.data),
	}
	if t.system == "linux" {
		errs = append(errs, r.image(t, program), r.packages(t, program, files))
	}
	return errors.Join(errs...)
}

// write adds a file to the release.
func (r *release) write(name string, data []byte) error {
	fmt.Printf("  %-60s %6.1f MB\n", name, float64(len(data))/1e6)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o666)
}

// sum writes the checksums of all files, as sha256sum does.
func (r *release) sum() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var out strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(out.String()), 0o666)
}
