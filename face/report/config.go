package report

import (
	"cmp"
	"fmt"
	"io"

	"strandline/face/api"
)

// Config prints the settings of `strandline config`.
func Config(w io.Writer, d *api.Config) {
	state := "not there"
	if d.Read {
		state = "read"
	}
	if d.File != "" {
		fmt.Fprintf(w, "%s: %s\n", Line(d.File), cmp.Or(Line(d.Note), state))
	}
	if len(d.Settings) == 0 {
		fmt.Fprintln(w, "nothing is set")
		return
	}
	t := &table{}
	t.row("command", "flag", "value", "source")
	for _, s := range d.Settings {
		t.row(cmp.Or(s.Command, "every"), "--"+s.Flag, s.Value, s.Source)
	}
	fmt.Fprintln(w)
	t.write(w, "  ")
}
