package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"strandline/docs"
)

// helpWith makes the help command explain commands and print guides.
func helpWith(g *globals, root, c *cobra.Command) {
	c.Use = "help [COMMAND | guide [NAME]]"
	c.Short = "Explain a command, or print a guide"
	c.Long = "Explain a command, with its flags and examples. With guide, print one of the guides as\nMarkdown, or list them.\n\n" + exitStatus
	c.Example = "  strandline help diagnose\n  strandline help guide\n  strandline help guide out-of-memory"
	complete := c.ValidArgsFunction
	c.ValidArgsFunction = func(c *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 || args[0] != "guide" {
			found, directive := complete(c, args, start)
			return append(found, "guide\tPrint a guide"), directive
		}
		var out []cobra.Completion
		for _, guide := range docs.Guides() {
			out = append(out, guide.Name+"\t"+guide.Title)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
		if len(args) > 0 && args[0] == "guide" {
			return g.guide(args[1:])
		}
		about, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return unknownCommand(about, rest[0])
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	}
}

// guide prints a guide, or the list of all.
func (g *globals) guide(names []string) error {
	all := docs.Guides()
	switch len(names) {
	case 0:
		for _, guide := range all {
			if _, err := fmt.Fprintf(g.env.stdout, "%-24s  %s\n", guide.Name, guide.Title); err != nil {
				return err
			}
		}
		return nil
	case 1:
		i := slices.IndexFunc(all, func(guide docs.Guide) bool { return guide.Name == names[0] })
		if i < 0 {
			return fmt.Errorf("there is no guide %q; `strandline help guide` lists them", names[0])
		}
		_, err := io.WriteString(g.env.stdout, all[i].Text)
		return err
	}
	return fmt.Errorf("name one guide; `strandline help guide` lists them")
}

// guides are those of commands, by the command's name, where the guide has another one.
var guides = map[string]string{
	"diagnose": "find-a-leak", "simulate": "what-if", "mem": "pausable", "snapshot": "record", "doctor": "privileges",
}

// guideOf is the name of a command's guide, empty if it has none.
func guideOf(c *cobra.Command) string {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	name := c.Name()
	if other, ok := guides[name]; ok {
		name = other
	}
	if !slices.ContainsFunc(docs.Guides(), func(guide docs.Guide) bool { return guide.Name == name }) {
		return ""
	}
	return name
}
