package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"strandline/cli"
	"strandline/internal/licenses"
)

// Places of documents in an archive. Packages put them where a system looks for them.
const (
	manual      = "man/"
	completions = "completions/"
)

// documents are the files beside the program: manual pages, completion, licenses.
func (r *release) documents() ([]file, error) {
	pages, err := os.MkdirTemp("", "strandline-man-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(pages)
	root := cli.Commands()
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Date: &r.time, Source: "strandline " + r.version, Manual: "strandline"}
	if err := doc.GenManTree(root, &header, pages); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{manual + e.Name(), text, 0o644})
	}
	for name, generate := range map[string]func(*cobra.Command, io.Writer) error{
		"strandline.bash": func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"strandline.fish": func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
		"strandline.ps1":  (*cobra.Command).GenPowerShellCompletionWithDesc,
		"_strandline":     (*cobra.Command).GenZshCompletion,
	} {
		var text bytes.Buffer
		if err := generate(root, &text); err != nil {
			return nil, err
		}
		out = append(out, file{completions + name, text.Bytes(), 0o644})
	}
	license, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	out = append(out, file{"LICENSE", license, 0o644}, file{"THIRD_PARTY.txt", []byte(licenses.Text()), 0o644})
	sorted(out)
	return out, nil
}

func (r *release) archiveName(t target) string {
	return fmt.Sprintf("strandline_%s_%s_%s", r.version, t.system, t.arch)
}

// archive writes the program and its documents as the usual archive of a system.
func (r *release) archive(t target, program []byte, documents []file) error {
	name := r.archiveName(t)
	files := []file{{name + "/" + t.program(), program, 0o755}}
	for _, f := range documents {
		files = append(files, file{name + "/" + f.name, f.data, f.mode})
	}
	sorted(files)
	pack, suffix := r.tarball, ".tar.gz"
	if t.system == "windows" {
		pack, suffix = r.zip, ".zip"
	}
	data, err := pack(files)
	if err != nil {
		return err
	}
	return r.write(name+suffix, data)
}

// tarball packs files, all of the commit's time and of root.
func (r *release) tarball(files []file) ([]byte, error) {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, f := range files {
		h := tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: r.time, Typeflag: tar.TypeReg}
		if f.mode&fs.ModeSymlink != 0 {
			h.Typeflag, h.Linkname, h.Size, f.data = tar.TypeSymlink, string(f.data), 0, nil
		}
		if f.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, strings.TrimSuffix(f.name, "/")+"/"
			if f.mode&fs.ModeSticky != 0 {
				h.Mode |= 0o1000
			}
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return zipped(plain.Bytes())
}

// zipped compresses data without a name or a time.
func zipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// zip packs files, all of the commit's time.
func (r *release) zip(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestCompression) })
	for _, f := range files {
		h := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(&h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
