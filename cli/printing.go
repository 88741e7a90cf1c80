package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/face/report"
)

// printing is how much a command prints for a person, and whether in color.
type printing struct {
	verbose bool
	quiet   bool   // errors alone
	color   string // auto, always or never; "" is auto
}

// flags adds the flags, which every command has.
func (p *printing) flags(f *pflag.FlagSet) {
	p.color = "auto"
	f.BoolVarP(&p.verbose, "verbose", "v", false, "print every detail")
	f.BoolVarP(&p.quiet, "quiet", "q", false, "print errors only; the exit status is the verdict")
	f.Var(newChoice(&p.color, "auto", "always", "never"), "color", "color the text `WHEN`: auto, always or never")
}

// style returns how to print for a person.
func (g *globals) style() report.Style {
	e := g.env
	s := report.Style{Width: e.width, Verbose: g.printing.verbose}
	switch g.printing.color {
	case "always", "never":
		s.Color = g.printing.color == "always"
	default:
		s.Color = e.stdoutTerminal && e.getenv("TERM") != "dumb"
	}
	s.Links = s.Color && e.stdoutTerminal && opensLinks(e.getenv)
	return s
}

// opensLinks reports whether the terminal is one that opens the links of a text, by what it
// says of itself in the environment. Others may print the address.
func opensLinks(getenv func(string) string) bool {
	for _, name := range []string{"KITTY_WINDOW_ID", "WT_SESSION", "VTE_VERSION", "KONSOLE_VERSION"} {
		if getenv(name) != "" {
			return true
		}
	}
	return slices.Contains([]string{"iTerm.app", "WezTerm", "vscode", "ghostty"}, getenv("TERM_PROGRAM"))
}

// text is where a command prints for a person.
func (g *globals) text() io.Writer {
	if g.printing.quiet {
		return io.Discard
	}
	return report.PrintableWriter(g.env.stdout)
}

// progressTerminal reports whether progress can be shown on standard error.
func (g *globals) progressTerminal() bool { return g.env.stderrTerminal && !g.printing.quiet }

// A choice is a flag with a few values.
type choice struct {
	value  *string
	values []string
}

func newChoice(value *string, values ...string) *choice { return &choice{value, values} }

// Set takes one of the values.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.values, text) {
		return fmt.Errorf("want %s", c.Type())
	}
	*c.value = text
	return nil
}

// String is the value.
func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type lists the values, as an error names them.
func (c *choice) Type() string {
	last := len(c.values) - 1
	return strings.Join(c.values[:last], ", ") + " or " + c.values[last]
}

// completeChoices has shells complete the values of the choices of a command.
func completeChoices(c *cobra.Command, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*choice); ok {
			c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(v.values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
		}
	})
}
