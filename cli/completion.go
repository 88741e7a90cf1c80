package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/host/proc/procfs"
	"strandline/run/trace"
)

// values are those that shells offer for flags, by their name.
var values = map[string]func() []string{
	"backend":      func() []string { return []string{trace.BPF, trace.Ptrace, trace.Polling} },
	"empty-cache":  func() []string { return []string{"every=", "after="} },
	"endpoint":     func() []string { return []string{"chat", "completions"} },
	"format":       func() []string { return []string{"auto", "github", "text"} },
	"image-format": func() []string { return []string{"jpeg", "png"} },
	"metric":       func() []string { return []string{"host", "device", "both"} },
	"pid":          runningProcesses,
	"redact":       func() []string { return []string{"paths", "names", "both"} },
	"stacks":       func() []string { return []string{"python", "all"} },
	"steps-from":   func() []string { return []string{"auto", "call", "optimizer", "time", "annotation:"} },
	"to":           func() []string { return strings.Split(formatNames(), ", ") },
}

// complete has shells complete the values of the flags of a command.
func complete(c *cobra.Command) {
	completeChoices(c, c.Flags())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := c.GetFlagCompletionFunc(f.Name); ok || values[f.Name] == nil {
			return
		}
		all := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values[f.Name](), cobra.ShellCompDirectiveNoFileComp
		}
		c.RegisterFlagCompletionFunc(f.Name, all) // the flag exists
	})
}

// runningProcesses are the process IDs of this machine, with their commands.
func runningProcesses() (out []string) {
	for _, p := range procfs.Processes() {
		if command := p.Command(); command != "" && !strings.ContainsAny(command, "\n\t") {
			out = append(out, fmt.Sprintf("%s\t%s", strconv.Itoa(int(p)), command))
		}
	}
	return out
}
