package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/internal/safefile"
)

// configName is the file in the user's folder of configurations.
const configName = "config.yaml"

const maxConfig = 64 << 10 // bytes

// A config are the values of flags that are not given: of the environment, then of a file.
type config struct {
	getenv func(string) string
	path   string     // of the file; "" if none is looked for
	root   *yaml.Node // its mapping; nil if there is none
	err    error      // why the file is not used, without its name
}

// readConfig reads the file in a folder. One that another user could have written is not
// believed.
func readConfig(dir string, getenv func(string) string) *config {
	c := &config{getenv: getenv}
	if dir == "" {
		return c
	}
	dir = filepath.Join(dir, "strandline")
	c.path = filepath.Join(dir, configName)
	folder, err := safefile.OpenFolder(dir)
	if err != nil {
		c.refuse(err)
		return c
	}
	defer folder.Close()
	text, err := folder.Read(configName, maxConfig)
	if err != nil {
		c.refuse(err)
		return c
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		c.err = err
		return c
	}
	if len(document.Content) == 0 { // empty
		return c
	}
	if c.root = document.Content[0]; c.root.Kind != yaml.MappingNode {
		c.err = errors.New("want lines such as color: never")
		c.root = nil
	}
	return c
}

// refuse keeps why the file is not read. That there is none is no error.
func (c *config) refuse(err error) {
	var file *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, safefile.ErrForeign):
		c.err = errors.New("not read: another user could have written it")
	case errors.As(err, &file):
		c.err = file.Err
	default:
		c.err = err
	}
}

// section is the mapping of a command, given by its words; nil if there is none.
func (c *config) section(words []string) *yaml.Node {
	at := c.root
	for _, word := range words {
		if at = entry(at, word); at == nil || at.Kind != yaml.MappingNode {
			return nil
		}
	}
	return at
}

// entry is the value of a key of a mapping; nil if there is none.
func entry(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// words are those of a command after the program's name.
func words(c *cobra.Command) []string { return strings.Fields(c.CommandPath())[1:] }

// variable is the environment variable of a flag of a command.
func variable(words []string, flag string) string {
	name := strings.Join(append(append([]string{"strandline"}, words...), flag), "_")
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// value returns the values of a flag and where they are from; "" if they are given nowhere.
func (c *config) value(words []string, flag string) (values []string, source string, err error) {
	name := variable(words, flag)
	if v := c.getenv(name); v != "" {
		return []string{v}, "$" + name, nil
	}
	if flag == "color" && len(words) == 0 {
		if c.getenv("NO_COLOR") != "" {
			return []string{"never"}, "$NO_COLOR", nil
		}
		if v := c.getenv("CLICOLOR_FORCE"); v != "" && v != "0" {
			return []string{"always"}, "$CLICOLOR_FORCE", nil
		}
	}
	node := entry(c.section(words), flag)
	if node == nil {
		return nil, "", nil
	}
	source = c.place(node)
	switch node.Kind {
	case yaml.ScalarNode:
		return []string{node.Value}, source, nil
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, "", fmt.Errorf("%s: %s: want a list of values", source, flag)
			}
			values = append(values, item.Value)
		}
		return values, source, nil
	}
	return nil, "", fmt.Errorf("%s: %s: want a value", source, flag)
}

// place is where a node stands.
func (c *config) place(node *yaml.Node) string { return c.path + ":" + strconv.Itoa(node.Line) }

// unknown returns an error for a key of a command's section that is neither a flag nor a
// command.
func (c *config) unknown(command *cobra.Command) error {
	mapping := c.section(words(command))
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, name := mapping.Content[i], mapping.Content[i].Value
		sub := slices.ContainsFunc(command.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
		if !sub && settable(command).Lookup(name) == nil {
			return meant(fmt.Sprintf("%s: %q is neither a flag nor a command of %s", c.place(key), name, command.CommandPath()), nil, command)
		}
	}
	return nil
}

// settable are the flags of a command that the environment and the file can set. Those of
// every command are the program's.
func settable(c *cobra.Command) *pflag.FlagSet {
	from := c.LocalNonPersistentFlags()
	if !c.HasParent() {
		from = c.PersistentFlags()
	}
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	from.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			out.AddFlag(f)
		}
	})
	return out
}

// A setting is a flag with its values, and where they are from.
type setting struct {
	words  []string
	flag   *pflag.Flag
	values []string
	source string
}

// settings are those of a command that are given outside of the command line.
func (c *config) settings(command *cobra.Command) (out []setting, err error) {
	if err := c.unknown(command); err != nil {
		return nil, err
	}
	settable(command).VisitAll(func(f *pflag.Flag) {
		values, source, wrong := c.value(words(command), f.Name)
		if err = errors.Join(err, wrong); source != "" {
			out = append(out, setting{words(command), f, values, source})
		}
	})
	return out, err
}

// configure sets the flags of a command that were not given. A flag that excludes one that
// was given is left alone.
func (g *globals) configure(c *cobra.Command) error {
	if g.config != nil { // it was done
		return nil
	}
	g.config = readConfig(g.env.configDir, g.env.getenv)
	if g.config.err != nil && c.Name() != "config" { // which prints it
		g.warn("%s: %v", g.config.path, g.config.err)
	}
	for _, command := range []*cobra.Command{c.Root(), c} {
		all, err := g.config.settings(command)
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.flag.Changed || excluded(c, s.flag) {
				continue
			}
			for _, v := range s.values {
				if err := c.Flags().Set(s.flag.Name, v); err != nil {
					return fmt.Errorf("%s: %w", s.source, flagError(c, err))
				}
			}
		}
		if command == c { // the program itself
			break
		}
	}
	return nil
}

// configured has the flags of a command set before its arguments are looked at.
func (g *globals) configured(c *cobra.Command) {
	check := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if err := g.configure(c); err != nil || check == nil {
			return err
		}
		return check(c, args)
	}
}

// excluded reports whether a flag that was given excludes another one.
func excluded(c *cobra.Command, f *pflag.Flag) bool {
	for _, group := range f.Annotations["cobra_annotation_mutually_exclusive"] {
		for name := range strings.FieldsSeq(group) {
			if other := c.Flags().Lookup(name); other != nil && other.Changed && name != f.Name {
				return true
			}
		}
	}
	return false
}

func newConfig(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "config [COMMAND…]",
		Short: "Show settings, and the source of each",
		Long: `Show the flags that the environment or the configuration file sets. With a
COMMAND, show every flag of it with its value and source.

A flag on the command line is stronger than the environment, and that is
stronger than the file. The variable of a flag is STRANDLINE_COMMAND_FLAG, such as
STRANDLINE_PLAN_GPU or STRANDLINE_COLOR. The file is
strandline/config.yaml in $XDG_CONFIG_HOME (default ~/.config):

  color: never
  plan:
    gpu: H100
    train:
      gpus: 8

A file that another user could have written is not read.`,
		Example: "  strandline config\n  strandline config plan train",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if of, _, err := c.Root().Find(args); err == nil {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name())
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := g.configOf(c.Root(), args)
			if err != nil {
				return err
			}
			return g.print(doc, func(w io.Writer, _ report.Style) { report.Config(w, doc) })
		},
	}
}

// configOf lists the settings: all of a command, or what is set of any.
func (g *globals) configOf(root *cobra.Command, args []string) (*api.Config, error) {
	doc := &api.Config{Schema: api.ConfigSchema, File: g.config.path, Read: g.config.root != nil, Settings: []api.Setting{}}
	if g.config.err != nil {
		doc.Note = g.config.err.Error()
	}
	commands := []*cobra.Command{root}
	if len(args) > 0 {
		of, rest, err := root.Find(args)
		switch {
		case err != nil:
			return nil, err
		case len(rest) > 0:
			return nil, unknownCommand(of, rest[0])
		}
		commands = append(commands, of)
	} else {
		for i := 0; i < len(commands); i++ {
			commands = append(commands, commands[i].Commands()...)
		}
	}
	for _, c := range commands {
		all, err := g.config.settings(c)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			doc.Settings = append(doc.Settings, api.Setting{Command: strings.Join(s.words, " "), Flag: s.flag.Name, Value: strings.Join(s.values, ", "), Source: s.source})
		}
		if len(args) == 0 {
			continue
		}
		settable(c).VisitAll(func(f *pflag.Flag) {
			if !slices.ContainsFunc(all, func(s setting) bool { return s.flag == f }) {
				doc.Settings = append(doc.Settings, api.Setting{Command: strings.Join(words(c), " "), Flag: f.Name, Value: f.DefValue, Source: "default"})
			}
		})
	}
	return doc, nil
}
