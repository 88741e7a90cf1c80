package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpColumns is the width of the help: that of the narrowest usual terminal.
const helpColumns = 80

// A section is flags that the help of a command shows under a title.
type section struct {
	title string
	flags []string
}

// sections are those of the commands with many flags, by the command's path.
var sections = map[string][]section{
	"strandline plan": {
		{"Question", []string{"solve", "formats", "method", "check", "strict"}},
		{"Model", []string{"model", "quant", "kv-dtype", "mtp"}},
		{"GPUs", []string{"gpu", "gpus", "capacity", "nodes", "gpus-per-node", "node-link", "host-bandwidth"}},
		{"Engine", []string{"engine", "engine-version", "mem-fraction", "max-model-len", "max-num-seqs", "max-batched-tokens", "max-total-tokens", "kv-cache-bytes", "kv-blocks", "block-size", "cuda-graph-max-bs", "eager"}},
		{"Parallelism and offload", []string{"tp", "pp", "dp", "ep", "cpu-experts", "cpu-offload-gb"}},
		{"llama.cpp and Ollama", []string{"gpu-layers", "n-cpu-moe", "kv-dtype-v", "flash-attn", "swa-full", "kv-unified", "cache-ram"}},
		{"Load", []string{"requests", "prompt-tokens", "output-tokens", "images", "image-size"}},
		{"Output", []string{"markdown", "page", "no-open", "listen"}},
	},
	"strandline soak": {
		{"Server", []string{"url", "model", "endpoint", "pid", "timeout", "restart-wait", "reclaim-cmd"}},
		{"Waves", []string{"waves", "requests", "concurrency", "warmup", "until-verdict", "at-most", "repeat", "settle", "gap"}},
		{"Requests", []string{"input", "output", "stream", "turns", "prefix", "prefixes", "images", "image-size", "image-format", "abort", "seed"}},
		{"Limits", []string{"metric", "max-growth", "max-peak"}},
		{"Output", []string{"out", "junit", "format", "summary"}},
	},
}

// help prints the help of a command: what it does, examples, its flags and its exit
// status. The flags that every command has are in the help of the program.
func help(w io.Writer, c *cobra.Command) {
	about, status, _ := strings.Cut(strings.TrimSpace(c.Long), "\n\nExit status: ")
	usage := strings.TrimSuffix(c.UseLine(), " [flags]")
	if c.HasAvailableSubCommands() && !strings.Contains(usage, "COMMAND") {
		usage += " [COMMAND]"
	}
	fmt.Fprintf(w, "%s\n\nUsage: %s\n", paragraphs(about), usage)
	if c.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	helpCommands(w, c)
	helpFlags(w, c)
	if c.HasParent() {
		fmt.Fprint(w, "\nAlso --json, -v, -q and --color: see `strandline --help`.\n")
		if guide := guideOf(c); guide != "" {
			fmt.Fprintf(w, "Guide: `strandline help guide %s`.\n", guide)
		}
	}
	if status != "" {
		fmt.Fprintf(w, "\n%s\n", paragraphs("Exit status: "+status))
	}
}

// paragraphs fills the lines of a text to the width of the help. An indented line stays.
func paragraphs(text string) string {
	var out []string
	filled := false // the last line can take words of the next
	for line := range strings.SplitSeq(text, "\n") {
		own := line == "" || strings.HasPrefix(line, " ")
		if own {
			out = append(out, line)
		} else {
			for word := range strings.FieldsSeq(line) {
				last := len(out) - 1
				if filled && utf8.RuneCountInString(out[last])+1+utf8.RuneCountInString(word) <= helpColumns {
					out[last] += " " + word
				} else {
					out = append(out, word)
				}
				filled = true
			}
		}
		filled = !own
	}
	return strings.Join(out, "\n")
}

// helpCommands lists the commands below one, in their groups.
func helpCommands(w io.Writer, c *cobra.Command) {
	groups := c.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, group := range groups {
		shown := slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
			return !sub.IsAvailableCommand() && sub.Name() != "help" || sub.GroupID != group.ID
		})
		if len(shown) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", group.Title)
		for _, sub := range shown {
			fmt.Fprintf(w, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
}

// helpFlags lists the flags of a command, in sections if it has many.
func helpFlags(w io.Writer, c *cobra.Command) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" || !c.HasParent() {
			own.AddFlag(f)
		}
	})
	all := sections[c.CommandPath()]
	if all == nil {
		helpSection(w, "Flags", own)
	}
	for _, s := range all {
		some := pflag.NewFlagSet("", pflag.ContinueOnError)
		some.SortFlags = false
		for _, name := range s.flags {
			some.AddFlag(own.Lookup(name))
		}
		helpSection(w, s.title, some)
	}
}

func helpSection(w io.Writer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s:\n%s", title, flags.FlagUsagesWrapped(helpColumns))
	}
}
