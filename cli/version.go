package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	notices "strandline/internal/licenses"
)

// version is set by release builds (-ldflags "-X strandline/cli.version=1.2.3").
var version = "development"

func newVersion(g *globals) *cobra.Command {
	licenses := false
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    `Print the version of strandline and of its toolchain.`,
		Example: "  strandline version\n  strandline version --licenses",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			if licenses {
				_, err := io.WriteString(g.env.stdout, notices.Text)
				return err
			}
			return g.printVersion()
		},
	}
	c.Flags().BoolVar(&licenses, "licenses", false, "print the licenses of the third-party software in it")
	return c
}

func (g *globals) printVersion() error {
	doc := api.Version{Schema: api.VersionSchema, Version: version, Revision: "", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				doc.Revision = s.Value
			}
		}
	}
	return g.print(doc, func(w io.Writer, _ report.Style) {
		what := []string{"strandline", doc.Version}
		if doc.Revision != "" {
			what = append(what, doc.Revision)
		}
		fmt.Fprintln(w, strings.Join(append(what, doc.Go, doc.Platform), " "))
	})
}
