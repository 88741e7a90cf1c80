package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// sorted puts files in the order of their names.
func sorted(all []file) {
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// packages writes a package for Debian's family and one for Fedora's.
func (r *release) packages(t target, program []byte, documents []file) error {
	for _, kind := range []string{"deb", "rpm"} {
		if err := r.pack(kind, t, program, documents); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// installed are the files of a package, by their places in a system.
func (r *release) installed(kind string, program []byte, documents []file) ([]file, error) {
	out := []file{{"/usr/bin/strandline", program, 0o755}}
	zsh := map[string]string{"deb": "/usr/share/zsh/vendor-completions/", "rpm": "/usr/share/zsh/site-functions/"}[kind]
	for _, f := range documents {
		base, data := path.Base(f.name), f.data
		var place string
		switch {
		case strings.HasPrefix(f.name, manual):
			packed, err := zipped(data)
			if err != nil {
				return nil, err
			}
			place, data = "/usr/share/man/man1/"+base+".gz", packed
		case base == "strandline.bash":
			place = "/usr/share/bash-completion/completions/strandline"
		case base == "strandline.fish":
			place = "/usr/share/fish/vendor_completions.d/" + base
		case base == "_strandline":
			place = zsh + base
		case base == "strandline.ps1":
			continue
		case base == "LICENSE" && kind == "deb":
			place = "/usr/share/doc/strandline/copyright"
		default:
			place = "/usr/share/doc/strandline/" + base
		}
		out = append(out, file{place, data, 0o644})
	}
	unit, err := os.ReadFile(filepath.Join(r.source, "deploy", "strandline-watch.service"))
	if err != nil {
		return nil, err
	}
	const own, packaged = "ExecStart=/usr/local/bin/", "ExecStart=/usr/bin/"
	if !bytes.Contains(unit, []byte(own)) {
		return nil, fmt.Errorf("the unit has no %s", own)
	}
	unit = bytes.Replace(unit, []byte(own), []byte(packaged), 1)
	return append(out, file{"/usr/lib/systemd/system/strandline-watch.service", unit, 0o644}), nil
}

// The scripts of a package: its unit is stopped before it goes, and what the unit wrote goes
// with it, on Debian with a purge.
const (
	preRemove = `#!/bin/sh
case "$1" in remove | 0)
	[ ! -d /run/systemd/system ] || systemctl disable --now strandline-watch.service || :
	;;
esac
`
	postRemove = `#!/bin/sh
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
case "$1" in purge | 0) rm -rf /var/lib/strandline ;; esac
`
)

// folders are those that go with the last package that has them. dpkg needs no list; a system
// without systemd, such as a container, has no folder of units.
var folders = map[string][]string{"rpm": {"/usr/share/doc/strandline", "/usr/lib/systemd", "/usr/lib/systemd/system"}}

// pack writes a package.
func (r *release) pack(kind string, t target, program []byte, documents []file) error {
	stage, err := os.MkdirTemp("", "strandline-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	all, err := r.installed(kind, program, documents)
	if err != nil {
		return err
	}
	var contents files.Contents
	for i, f := range append(all, file{"pre", []byte(preRemove), 0o755}, file{"post", []byte(postRemove), 0o755}) {
		source := filepath.Join(stage, fmt.Sprint(i))
		if !path.IsAbs(f.name) {
			source = filepath.Join(stage, f.name)
		}
		if err := os.WriteFile(source, f.data, f.mode); err != nil {
			return err
		}
		if path.IsAbs(f.name) {
			contents = append(contents, &files.Content{
				Source: source, Destination: f.name,
				FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.time},
			})
		}
	}
	for _, folder := range folders[kind] {
		contents = append(contents, &files.Content{
			Destination: folder, Type: files.TypeDir,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: r.time},
		})
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "strandline", Arch: t.arch, Platform: t.system, Version: r.version, VersionSchema: "semver", Release: "1",
		Section: "utils", Priority: "optional", Maintainer: "strandline maintainers <maintainers@strandline.invalid>", License: "Apache-2.0",
		Description: "Find where the memory of a machine-learning job went\nstrandline reads PyTorch snapshots, logs, running processes and model configs.",
		MTime:       r.time,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PreRemove: filepath.Join(stage, "pre"), PostRemove: filepath.Join(stage, "post")},
			RPM:      nfpm.RPM{BuildHost: "localhost", Compression: "gzip"}, // unpacked in a third of the time of xz
			Deb:      nfpm.Deb{Compression: "gzip"},
		},
	})
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return r.write(packager.ConventionalFileName(info), out.Bytes())
}
