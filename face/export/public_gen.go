//go:build ignore

// Command public_gen makes public.txt.gz, the list of names that Redact leaves,
// from an installation of PyTorch and Python:
//
//	cd face/export && go run public_gen.go -torch DIR -python DIR LIBRARY…
//
// DIR are the folders torch/ and lib/python3.N/, LIBRARY the shared libraries
// libc10, libtorch_python, libtorch_cpu and libtorch_cuda, and the python
// executable. What is in the list already stays, so that it can hold the files of
// several versions; remove it to start over.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"flag"
	"io"
	"io/fs"
	"log"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/ianlancetaylor/demangle"
)

const list = "public.txt.gz"

var (
	function   = regexp.MustCompile(`(?m)^\s*(?:async )?def (\w+)`)
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	source     = regexp.MustCompile(`(?:aten/src/ATen|torch/csrc|c10)/[\w/.-]+\.(?:cpp|h|cu|cuh|c)\b`)
	ours       = regexp.MustCompile(`^(at|c10|c10d|torch|caffe2)::|^(THP|_?Py)`)
	// unseen are folders of which no frame is in the stack of an allocation.
	unseen = regexp.MustCompile(`^torch/(testing|onnx|ao|quantization|_inductor|_dynamo|_refs|_decomp|_prims|_export|export|_numpy|fx/experimental|fx/passes|distributed/_tools|distributed/benchmarks|contrib)/|(^|/)(tests?|idlelib|tkinter|lib2to3|ensurepip|turtledemo|pydoc_data|encodings|\w+-packages)/`)
)

func main() {
	torch := flag.String("torch", "", "the folder torch/ of an installation")
	python := flag.String("python", "", "the folder lib/python3.N/ of Python")
	flag.Parse()
	names := read()
	if *torch != "" {
		pythonNames(names, *torch, "torch/")
	}
	if *python != "" {
		pythonNames(names, *python, "")
	}
	for _, file := range flag.Args() {
		libraryNames(names, file)
	}
	delete(names, "")
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	check(err)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		io.WriteString(z, name+"\n")
	}
	check(z.Close())
	check(os.WriteFile(list, out.Bytes(), 0o666))
	log.Printf("%d names, %d bytes", len(names), out.Len())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// read returns what the list holds.
func read() map[string]bool {
	names := map[string]bool{}
	f, err := os.Open(list)
	if os.IsNotExist(err) {
		return names
	}
	check(err)
	z, err := gzip.NewReader(f)
	check(err)
	for in := bufio.NewScanner(z); in.Scan(); {
		names[in.Text()] = true
	}
	return names
}

// pythonNames adds the files below a folder, and the functions that they define.
func pythonNames(names map[string]bool, dir, prefix string) {
	check(filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path.Ext(file) != ".py" {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		check(err)
		if name := prefix + filepath.ToSlash(rel); !unseen.MatchString(name) {
			text, err := os.ReadFile(file)
			check(err)
			names[name] = true
			for _, m := range function.FindAllSubmatch(text, -1) {
				names[string(m[1])] = true
			}
		}
		return nil
	}))
}

// libraryNames adds the identifiers of exported symbols, and the sources that the
// messages of assertions name.
func libraryNames(names map[string]bool, file string) {
	f, err := elf.Open(file)
	check(err)
	symbols, err := f.DynamicSymbols()
	check(err)
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		name := demangle.Filter(s.Name)
		if ours.MatchString(name) {
			for _, word := range identifier.FindAllString(name, -1) {
				names[word] = true
			}
		}
	}
	texts, err := f.Section(".rodata").Data()
	check(err)
	for _, name := range source.FindAllString(string(texts), -1) {
		names[name] = true
	}
}
