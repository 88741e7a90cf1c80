package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/internal/shell"
)

// synonyms are words that people try for a command, by its path.
var synonyms = map[string][]string{
	"strandline diagnose": {"analyse", "analyze", "explain", "judge", "leak", "leaks", "log", "oom", "why"},
	"strandline view":     {"browse", "open", "page", "serve", "show", "ui", "visualize", "web"},
	"strandline compare":  {"diff", "ranks"},
	"strandline inspect":  {"cat", "dump", "facts", "info", "print", "show", "stat"},
	"strandline simulate": {"replay", "set", "try", "what-if", "whatif"},
	"strandline export":   {"convert", "save", "to", "write"},
	"strandline record":   {"capture", "profile", "run"},
	"strandline trace":    {"attach", "heap", "strace"},
	"strandline watch":    {"monitor", "nvidia-smi", "nvitop", "ps", "status", "top"},
	"strandline check":    {"ci", "gate", "leak", "leaks", "test"},
	"strandline soak":     {"bench", "load", "stress"},
	"strandline plan":     {"calculate", "estimate", "fit", "fits", "models", "gpus", "size", "train"},
	"strandline mem":      {"pause", "resume"},
	"strandline config":   {"configuration", "settings"},
	"strandline doctor":   {"health", "status"},
}

// maxTypos is how many letters a word may differ by from the one that was meant.
const maxTypos = 2

// unknownCommand is the error for a word that is no command of c, with those that may have
// been meant.
func unknownCommand(c *cobra.Command, word string) error {
	what := fmt.Sprintf("unknown command %q", word)
	if c.HasParent() {
		what = fmt.Sprintf("unknown command %q of %s", word, c.CommandPath())
	} else if _, err := os.Stat(word); err == nil {
		return fmt.Errorf("%s: to explain the file, `strandline diagnose %s`", what, shell.File(word))
	}
	var named []string
	for _, sub := range c.Commands() {
		if slices.Contains(synonyms[sub.CommandPath()], strings.ToLower(word)) {
			named = append(named, sub.Name())
		}
	}
	if named == nil {
		c.SuggestionsMinimumDistance = min(maxTypos, (len(word)-1)/2)
		named = c.SuggestionsFor(word)
	}
	return meant(what, named, c)
}

// unknownFlag is the error for a flag that a command does not have.
func unknownFlag(c *cobra.Command, err *pflag.NotExistError) error {
	if err.GetSpecifiedShortnames() != "" {
		return meant(err.Error(), nil, c)
	}
	names := &cobra.Command{SuggestionsMinimumDistance: maxTypos} // its commands are the flags
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	suggested := names.SuggestionsFor(err.GetSpecifiedName())
	for i, name := range suggested {
		suggested[i] = "--" + name
	}
	return meant(err.Error(), suggested, c)
}

// meant adds to an error which names may have been meant, or where all are listed.
func meant(what string, names []string, c *cobra.Command) error {
	const maxNames = 3
	switch names = names[:min(len(names), maxNames)]; len(names) {
	case 0:
		kind := "flags"
		if strings.HasPrefix(what, "unknown command") {
			kind = "commands"
		}
		return fmt.Errorf("%s; `%s --help` lists the %s", what, c.CommandPath(), kind)
	case 1:
		return fmt.Errorf("%s; did you mean %s?", what, names[0])
	}
	last := len(names) - 1
	return fmt.Errorf("%s; did you mean %s or %s?", what, strings.Join(names[:last], ", "), names[last])
}

// noArguments accepts flags alone.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.HasAvailableSubCommands():
		return unknownCommand(c, args[0])
	}
	return fmt.Errorf("%s takes only flags; got %q", c.CommandPath(), args[0])
}

// usageError words an error of cobra's.
func usageError(root *cobra.Command, err error) error {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "unknown command "); ok && root != nil && strings.HasSuffix(text, strconv.Quote(root.Name())) {
		if quoted, wrong := strconv.QuotedPrefix(rest); wrong == nil {
			word, _ := strconv.Unquote(quoted) // it is one
			return unknownCommand(root, word)
		}
	}
	if names, ok := strings.CutSuffix(text, "] were all set"); ok {
		names = names[strings.LastIndexByte(names, '[')+1:]
		return fmt.Errorf("give only one of --%s", strings.ReplaceAll(names, " ", ", --"))
	}
	if strings.HasPrefix(text, "required flag") { // with the name in quotes
		return fmt.Errorf("--%s is missing", strings.Split(text, `"`)[1])
	}
	return err
}

// flagError says how a flag was wrong.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(c, unknown)
	case errors.As(err, &value):
		kind := value.GetFlag().Value.Type()
		want := map[string]string{"int": "a whole number", "uint64": "a whole number that is not below 0", "bool": "true or false", "size": "a size, such as 20GiB"}[kind]
		if want == "" {
			want = kind
		}
		return fmt.Errorf("--%s %q: want %s; `%s --help` lists the flags", value.GetFlag().Name, value.GetValue(), want, c.CommandPath())
	}
	return fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath())
}
