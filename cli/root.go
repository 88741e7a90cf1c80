package cli

import (
	"context"
	"io"
	"runtime/pprof"
	"strings"

	"github.com/spf13/cobra"

	"strandline/internal/safefile"
)

// The groups of commands in the help.
const (
	understand    = "understand"
	capture       = "capture"
	gating        = "gate"
	planning      = "plan"
	experimental  = "experimental"
	otherCommands = "other"
)

// way is what the program prints without a command.
const way = `Strandline finds where the memory of a machine-learning job went.

  Job died?          strandline diagnose job.log
  Have snapshots?    strandline diagnose dumps/      see them: strandline view dumps/
  Memory grows?      strandline watch                see why: strandline trace --pid PID
  Need snapshots?    strandline record -- python train.py
  Will it fit?       strandline plan --model Llama-3.1-8B --gpu H100
  Guard a test?      strandline check -- python test.py

strandline --help lists all commands; strandline COMMAND --help explains one.
`

const exitStatus = `Exit status: 0 nothing wrong found; 1 problem found; 2 wrong usage or unreadable
input; 3 input partly readable (results are printed; 1 wins); 130 interrupted.`

func init() { cobra.EnableCommandSorting = false } // the most useful first

// Commands is the tree of all commands, for what is generated from it: manual pages and
// completion. Commands of it are not run.
func Commands() *cobra.Command {
	return newRoot(&globals{env: &Env{context: context.Background(), getenv: func(string) string { return "" }}})
}

func newRoot(g *globals) *cobra.Command {
	showVersion := false
	root := &cobra.Command{
		Use:   "strandline",
		Short: "Find where the memory of a machine-learning job went",
		Long: `Strandline finds where the memory of a machine-learning job went: what leaks,
which line allocates it, how certain that is, and how to fix it. It reads PyTorch
snapshots, logs, running processes and model configs, without Python or a GPU.

` + exitStatus,
		Example: `  strandline diagnose job.log
  strandline diagnose dumps/
  strandline watch --pid 4242
  strandline plan --model Llama-3.1-8B --gpu H100`,
		SilenceUsage: true, SilenceErrors: true, DisableSuggestions: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := g.configure(c); err != nil { // the program itself
				return err
			}
			if g.cpuProfile == "" {
				return nil
			}
			f, err := safefile.Create(c.Context(), g.cpuProfile)
			if err != nil {
				return err
			}
			g.profiled = f
			return pprof.StartCPUProfile(f)
		},
		RunE: func(*cobra.Command, []string) error {
			if showVersion {
				return g.printVersion()
			}
			_, err := io.WriteString(g.text(), way)
			return err
		},
	}
	f := root.PersistentFlags()
	f.BoolVar(&g.json, "json", false, "print JSON")
	g.printing.flags(f)
	f.StringVar(&g.cpuProfile, "cpuprofile", "", "write a CPU profile of strandline itself to `FILE`")
	f.MarkHidden("cpuprofile")
	completeChoices(root, f)
	root.Flags().BoolVarP(&showVersion, "version", "V", false, "print the version")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { help(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error { help(c.OutOrStderr(), c); return nil })
	addCommands(root, g)
	return root
}

// addCommands adds the commands in their groups.
func addCommands(root *cobra.Command, g *globals) {
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{understand, "Understand:", []*cobra.Command{newDiagnose(g), newView(g), newCompare(g), newInspect(g), newSimulate(g), newExport(g)}},
		{capture, "Capture:", []*cobra.Command{newRecord(g), newSnapshot(g), newTrace(g), newWatch(g), newHooks(g)}},
		{gating, "Gate:", []*cobra.Command{newCheck(g), newSoak(g)}},
		{planning, "Plan:", []*cobra.Command{newPlan(g)}},
		{experimental, "Experimental:", []*cobra.Command{newMem(g)}},
		{otherCommands, "This program:", []*cobra.Command{newDoctor(g), newConfig(g), newVersion(g)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
			if group.id == understand {
				g.readsStandardInput(c)
			}
			if !strings.Contains(c.Long, "Exit status: ") { // the command does not state its own
				c.Long = strings.TrimSpace(c.Long) + "\n\n" + exitStatus
			}
			root.AddCommand(c)
		}
	}
	for all := root.Commands(); len(all) > 0; all = all[1:] {
		g.configured(all[0])
		complete(all[0])
		all = append(all, all[0].Commands()...)
	}
	root.AddCommand(newFiltered())
	root.SetHelpCommandGroupID(otherCommands)
	root.SetCompletionCommandGroupID(otherCommands)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(g.env.args...)
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Short = "Print the completion script of a shell"
			c.Long = "Print the script that makes a shell complete the commands and flags of strandline.\n\n" + exitStatus
			c.Example = "  source <(strandline completion bash)\n  strandline completion zsh > \"${fpath[1]}/_strandline\"\n" +
				"  strandline completion fish > ~/.config/fish/completions/strandline.fish"
		case "help":
			helpWith(g, root, c)
		}
	}
}
