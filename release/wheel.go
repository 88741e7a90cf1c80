package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"strandline/internal/licenses"
)

// platforms are the tags of wheels: a static program runs with any C library of Linux, and
// Go's programs need macOS 12.
var platforms = map[target]string{
	{"linux", "amd64"}:   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64",
	{"windows", "arm64"}: "win_arm64",
}

// wheel packs the program and the recorder's Python module, so that pip installs both.
func (r *release) wheel(t target, program, parts []byte) (*file, error) {
	version, err := pythonVersion(r.version)
	if err != nil {
		return nil, err
	}
	tags := "py3-none-" + platforms[t]
	name := "strandline-" + version
	info := name + ".dist-info/"
	license, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	about := "Metadata-Version: 2.4\nName: strandline\nVersion: " + version + `
Summary: Find where the memory of a machine-learning job went
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY.txt
Keywords: pytorch,cuda,gpu,memory,leak,out of memory
Classifier: Environment :: Console
Classifier: Topic :: Software Development :: Debuggers
Requires-Python: >=3.8
Description-Content-Type: text/markdown

strandline tells you where the memory of a machine-learning job went, and how to fix it.

    strandline diagnose job.log

` + "`strandline help` lists the commands and guides. `import strandline` is the module that records snapshots.\n"
	wheel := "Wheel-Version: 1.0\nGenerator: strandline-release\nRoot-Is-Purelib: false\n"
	_, systems, _ := strings.Cut(tags, "py3-none-")
	for system := range strings.SplitSeq(systems, ".") {
		wheel += "Tag: py3-none-" + system + "\n"
	}
	files := []file{
		{name + ".data/scripts/" + t.program(), program, 0o755},
		{info + "METADATA", []byte(about), 0o644},
		{info + "WHEEL", []byte(wheel), 0o644},
		{info + "licenses/LICENSE", license, 0o644},
		{info + "licenses/THIRD_PARTY.txt", []byte(licenses.Text()), 0o644},
		{info + "sboms/strandline.spdx.json", parts, 0o644},
	}
	module := os.DirFS(filepath.Join(r.source, "record", "python"))
	err = fs.WalkDir(module, "strandline", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".py" {
			return err
		}
		text, err := fs.ReadFile(module, name)
		files = append(files, file{name, text, 0o644})
		return err
	})
	if err != nil {
		return nil, err
	}
	sorted(files)
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	data, err := r.zip(append(files, file{info + "RECORD", []byte(record.String()), 0o644})) // the last, as its specification asks
	return &file{name: name + "-" + tags + ".whl", data: data}, err
}

// versions are Go's: a tag, with a pre-release or not, or a commit after a tag.
var versions = regexp.MustCompile(`^(\d+\.\d+\.\d+)(?:-(?:(alpha|beta|rc)\.?(\d+)|(?:.*\.)?0?\.?(\d{14})-[0-9a-f]{12}))?$`)

// pythonVersion is a version as Python's packages have it.
func pythonVersion(version string) (string, error) {
	m := versions.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("the version %s has no form in Python: tag vX.Y.Z or vX.Y.Z-rc.N", version)
	}
	switch {
	case m[4] != "":
		return m[1] + ".dev" + m[4], nil
	case m[2] != "":
		return m[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[2]] + m[3], nil
	}
	return m[1], nil
}
