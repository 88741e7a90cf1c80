package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"strandline/face/export"
	"strandline/face/report"
	"strandline/torch/snapshot"
)

// A format is a value of --to.
type format struct {
	name   string
	what   string                                    // a line of help
	text   bool                                      // suitable for a terminal
	stream func(io.Writer, *snapshot.Snapshot) error // nil: it needs a file
	file   func(context.Context, io.WriterAt, *snapshot.Snapshot) error
}

// formats are in the order of the help.
var formats = []format{
	{name: "pickle", what: "as PyTorch would have written it: converted, decompressed, repaired",
		stream: func(w io.Writer, s *snapshot.Snapshot) error { return s.Write(w) }},
	{name: "pprof", what: "allocations and live memory, by stack (go tool pprof)", stream: export.Pprof},
	{name: "folded", what: "live memory, one line per stack (flame graphs)", text: true, stream: export.Folded},
	{name: "csv", what: "the events, one per row, with the line of your code", text: true, stream: export.CSV},
	{name: "sqlite", what: "all of it as tables and views to query", file: export.SQLite},
	{name: "perfetto", what: "bytes over time with annotations and errors (ui.perfetto.dev)", stream: export.Perfetto},
}

// redactions are the values of --redact.
var redactions = map[string]export.Redaction{
	"": 0, "paths": export.Paths, "names": export.Names, "both": export.Paths | export.Names,
}

func formatOf(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
}

func formatNames() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// formatHelp returns a line for each format.
func formatHelp() string {
	var out strings.Builder
	for _, f := range formats {
		fmt.Fprintf(&out, "  %-9s %s\n", f.name, f.what)
	}
	return out.String()
}

// write makes the file at path and returns its length.
func (f *format) write(ctx context.Context, g *globals, path string, s *snapshot.Snapshot) (int64, error) {
	if f.stream != nil {
		return g.create(ctx, path, func(w io.Writer) error {
			if path == "-" && g.env.stdoutTerminal {
				w = report.PrintableWriter(w)
			}
			return f.stream(w, s)
		})
	}
	return g.createFile(path, func(w io.WriterAt) error { return f.file(ctx, w, s) })
}
