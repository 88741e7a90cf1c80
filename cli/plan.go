package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/plan/observed"
	"strandline/run/planner"
)

// planFlags are the flags that plan and its subcommands have beside those of the plan.
type planFlags struct {
	markdown, strict bool
	page             pageOptions
}

// add gives a command the flags of a kind of plan, and the others.
func (o *planFlags) add(c *cobra.Command, kind planner.Kind) {
	flags := kind.Flags()
	c.Flags().AddFlagSet(flags.FlagSet)
	for name, values := range flags.Choices {
		c.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveDefault
		})
	}
	c.Flags().BoolVar(&o.markdown, "markdown", false, "print Markdown, for a ticket")
	o.page.add(c)
}

// checks adds the flag of checks against a plan.
func (o *planFlags) checks(c *cobra.Command) {
	c.Flags().BoolVar(&o.strict, "strict", false, "with --check: exit with 1 if more is used than planned")
}

// planned prints the plan of a kind, or shows the page.
func (g *globals) planned(c *cobra.Command, o *planFlags, kind planner.Kind, model string) error {
	if o.page.on {
		return g.planPage(c, o, model)
	}
	doc, fits, err := kind.Plan(loadModel)
	if err != nil {
		return err
	}
	return fitting(fits, g.printPlan(o.markdown, doc))
}

// servingPlan is plan without a subcommand: of an engine.
type servingPlan struct {
	planFlags
	planner.Serving
	against, models, check string
}

func newPlan(g *globals) *cobra.Command {
	var o servingPlan
	c := &cobra.Command{
		Use:   "plan",
		Short: "Plan memory before the run, and check the run against the plan",
		Long: `Plan the memory of an inference engine (vLLM, SGLang, llama.cpp, Ollama) on the
GPU with the least headroom: weights, KV cache, activations, CUDA graphs, memory
outside PyTorch, and host memory. The answer says what fits, with the flags for
it. A figure that cannot be computed is a range with its source.

"plan train" plans a training step, and "plan rl" the phases of reinforcement
learning. "plan gpus" and "plan models" list the built-in ones.

An engine's command line after -- fills in flags that you do not give. --page
opens a form that plans as you type. The exit status is 1 if nothing fits.`,
		Example: `  strandline plan --model DeepSeek-R1 --gpu H200 --gpus 16 --engine vllm
  strandline plan --model ./my-model --gpu L40S --engine sglang --formats
  strandline plan --model Qwen3-32B --gpu H100 --gpus 2 --solve context
  strandline plan --gpu H200 -- vllm serve Qwen/Qwen3-32B -tp 2
  strandline plan --gpu RTX-4090 -- llama-server -m model.gguf -c 32768 -np 2
  strandline plan --check vllm.log --model Llama-3.1-8B`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() == 0 {
				return nil
			}
			return noArguments(c, args)
		},
		RunE: func(c *cobra.Command, command []string) error {
			if len(command) == 0 {
				return g.planServing(c, &o)
			}
			left, err := engineCommand(c, command)
			if err != nil {
				return err
			}
			if len(left) > 0 {
				g.warn("ignored, it does not affect the plan: %s", strings.Join(left, ", "))
			}
			return g.planServing(c, &o)
		},
	}
	o.add(c, &o.Serving)
	o.checks(c)
	f := c.Flags()
	f.StringVar(&o.against, "against", "", "check plans against a `TABLE` (CSV) of observed figures")
	f.StringVar(&o.check, "check", "", "check an engine's `LOG` against the plan of its set-up")
	f.StringVar(&o.models, "models", "", "a JSON `FILE` of configs by the name of their model, for --against")
	for _, name := range []string{"against", "models"} { // for those who calibrate plans
		f.Lookup(name).Hidden = true
	}
	c.MarkFlagsMutuallyExclusive("against", "check", "solve", "method", "formats")
	for _, sub := range []*cobra.Command{newPlanTrain(g), newPlanRL(g), newPlanGPUs(g), newPlanModels(g)} {
		sub.Long += "\n\n" + exitStatus
		c.AddCommand(sub)
	}
	return c
}

func (g *globals) planServing(c *cobra.Command, o *servingPlan) error {
	switch {
	case o.page.on:
	case o.against != "":
		return g.planAgainst(o)
	case o.check != "":
		return g.planCheck(c.Context(), o)
	}
	return g.planned(c, &o.planFlags, &o.Serving, o.Model)
}

// fitting is the end of a command that printed a plan: what does not fit is a
// problem.
func fitting(fits bool, err error) error {
	if err == nil && !fits {
		return exit(exitProblem)
	}
	return err
}

// printPlan prints a document as JSON, as Markdown or as text.
func (g *globals) printPlan(markdown bool, doc planner.Document) error {
	if markdown && !g.json {
		doc.Markdown(g.text())
		return nil
	}
	return g.print(doc, doc.Text)
}

// planAgainst prints the errors of plans as JSON, for calibration.
func (g *globals) planAgainst(o *servingPlan) error {
	find, err := modelConfigs(o.models)
	if err != nil {
		return err
	}
	f, err := g.openInput(o.against)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := observed.Against(f, find)
	if err != nil {
		return fmt.Errorf("%s: %w", o.against, err)
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: no row of it can be planned: want the columns id, kind and model_id, or those of a training set-up", o.against)
	}
	return report.JSON(g.env.stdout, api.NewAgainst(strings.TrimSpace(o.against), rows))
}
