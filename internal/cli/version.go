package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/report"
	notices "strandline/internal/licenses"
)

// version is set by release builds (-ldflags "-X strandline/internal/cli.version=1.2.3").
var version = "development"

type versionReport struct {
	Schema   string `json:"schema"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(g *globals) *cobra.Command {
	licenses := false
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of strandline and of what it was built with.",
		Example: "  strandline version\n  strandline version --licenses",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if licenses {
				_, err := io.WriteString(g.env.Stdout, notices.Text)
				return err
			}
			doc := versionReport{"strandline.version/1", version, "", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
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
		},
	}
	c.Flags().BoolVar(&licenses, "licenses", false, "print the licences of the third-party software in it")
	return c
}
