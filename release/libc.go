package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blakesmith/ar"
	"github.com/ulikunitz/xz"
)

// libraries are the files of Debian's package libc6 that a library of NVIDIA's driver needs,
// with the license.
var libraries = []string{
	"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "copyright",
}

// libc reads the C library of an architecture from the package libc6 in a folder. The static
// program does not need it; NVIDIA's library does, which a container gets from the machine.
func libc(folder, arch string) (out []file, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "libc6_") && strings.HasSuffix(e.Name(), "_"+arch+".deb") {
			return libcOf(filepath.Join(folder, e.Name()))
		}
	}
	return nil, fmt.Errorf("%s has no libc6_*_%s.deb; apt-get download libc6:%s", folder, arch, arch)
}

func libcOf(deb string) (out []file, err error) {
	f, err := os.Open(deb)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	members := ar.NewReader(f)
	for {
		h, err := members.Next()
		if err != nil {
			return nil, fmt.Errorf("%s: data.tar.xz: %w", deb, err)
		}
		if strings.HasPrefix(h.Name, "data.tar.xz") {
			break
		}
	}
	unpacked, err := xz.NewReader(members)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", deb, err)
	}
	in := tar.NewReader(unpacked)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", deb, err)
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "./"))
		if h.Typeflag == tar.TypeSymlink && slices.Contains(libraries, path.Base(name)) {
			out = append(out, file{name, []byte(h.Linkname), fs.ModeSymlink | 0o777})
		}
		if h.Typeflag == tar.TypeReg && slices.Contains(libraries, path.Base(name)) {
			data, err := io.ReadAll(in)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", deb, err)
			}
			out = append(out, file{name, data, fs.FileMode(h.Mode).Perm()})
		}
	}
	const minFiles = 7 // with the loader, and its link
	if len(out) < minFiles {
		return nil, fmt.Errorf("%s has %d of the files that are needed", deb, len(out))
	}
	return out, nil
}
