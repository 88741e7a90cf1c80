package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	notices "strandline/internal/licenses"
)

// release is the version of a build outside of a repository, such as that of an archive of
// the sources: -ldflags "-X strandline/cli.release=1.2.3".
var release string

// version is the program's: that of the tag that it was built from, without "v". Between
// two tags the go command makes one from the time and the hash of the commit.
var version = sync.OnceValue(func() string {
	const development = "development"
	info, ok := debug.ReadBuildInfo()
	switch {
	case release != "":
		return release
	case !ok || !strings.HasPrefix(info.Main.Version, "v"): // built without the repository
		return development
	}
	return strings.TrimPrefix(info.Main.Version, "v")
})

func newVersion(g *globals) *cobra.Command {
	licenses := false
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    `Print the version of strandline, its commit with the time, and its toolchain.`,
		Example: "  strandline version\n  strandline version --licenses",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			if licenses {
				_, err := io.WriteString(g.env.stdout, notices.Text())
				return err
			}
			return g.printVersion()
		},
	}
	c.Flags().BoolVar(&licenses, "licenses", false, "print the licenses of the third-party software in it")
	return c
}

func (g *globals) printVersion() error {
	doc := api.Version{Schema: api.VersionSchema, Version: version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				doc.Revision = s.Value
			case "vcs.time":
				doc.Time = s.Value
			}
		}
	}
	return g.print(doc, func(w io.Writer, _ report.Style) {
		words := []string{"strandline", doc.Version}
		for _, known := range []string{doc.Revision, doc.Time} {
			if known != "" {
				words = append(words, known)
			}
		}
		fmt.Fprintln(w, strings.Join(append(words, doc.Go, doc.Platform), " "))
	})
}
