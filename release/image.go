package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image writes an image of the program, and of a C library where one is given, for `docker
// load`, `podman load` and `crane push`.
func (r *release) image(t target, program []byte) error {
	files := []file{{"strandline", program, 0o755}, {"tmp", nil, fs.ModeDir | fs.ModeSticky | 0o777}}
	if r.libc != "" {
		library, err := libc(r.libc, t.arch)
		if err != nil {
			return err
		}
		// NVIDIA's container toolkit writes the loader's cache, and its libraries' place
		// depends on the distribution.
		files = append(append(files, library...), file{"etc/debian_version", []byte("12\n"), 0o644})
	}
	sorted(files)
	data, err := r.tarball(files)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	made, err := image.ConfigFile()
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: t.arch, OS: t.system, Created: v1.Time{Time: r.time},
		RootFS:  made.RootFS,
		History: []v1.History{{Created: v1.Time{Time: r.time}, CreatedBy: "strandline-release"}},
		Config: v1.Config{
			Entrypoint: []string{"/strandline"},
			Env:        []string{"PATH=/:/usr/bin", "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64"},
			Labels: map[string]string{
				"org.opencontainers.image.title":    "strandline",
				"org.opencontainers.image.version":  r.version,
				"org.opencontainers.image.revision": r.revision,
				"org.opencontainers.image.created":  r.time.Format("2006-01-02T15:04:05Z"),
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
	})
	if err != nil {
		return err
	}
	tag, err := name.NewTag("strandline:" + r.version)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := tarball.Write(tag, image, &out); err != nil {
		return err
	}
	return r.write(fmt.Sprintf("strandline_%s_%s_%s.image.tar", r.version, t.system, t.arch), out.Bytes())
}
