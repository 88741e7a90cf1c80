package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"strandline/internal/planner"
	"strandline/plan/rl"
)

// rlPlan is plan rl.
type rlPlan struct {
	planFlags
	planner.RL
	phases string
	yaml   bool
}

func newPlanRL(g *globals) *cobra.Command {
	var o rlPlan
	c := &cobra.Command{
		Use:   "rl",
		Short: "Plan a step of reinforcement learning: its phases, and their peaks",
		Long: `Plan one step of reinforcement learning, in which a trainer and an inference
engine share the GPUs, as a timeline of phases (rollout, log-probs, update, weight
sync) under four ways of sharing, with the peak of each phase, what causes it, and
the largest memory fraction of the engine that fits.

The phases are data: --yaml prints them, --phases reads them back. The exit
status is 1 where no way fits.`,
		Example: `  strandline plan rl --model Qwen2.5-32B --gpu H200 --gpus 8 --trainer fsdp --rollout sglang --rollout-tp 4
  strandline plan rl --model Qwen2.5-7B --gpu H100 --gpus 8 --yaml > phases.yaml
  strandline plan rl --model Qwen2.5-7B --gpu H100 --gpus 8 --page
  strandline plan rl --phases phases.yaml`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.page.on:
			case o.phases != "":
				return g.planPhases(&o)
			case o.yaml:
				return g.printYAML(&o)
			}
			return g.planned(c, &o.planFlags, &o.RL, o.Model)
		},
	}
	o.add(c, &o.RL)
	c.Flags().StringVar(&o.phases, "phases", "", "take the phases from a `FILE`")
	c.Flags().BoolVar(&o.yaml, "yaml", false, "print the phases as YAML, to edit")
	return c
}

// printYAML prints the phases of a set-up, for a person to edit.
func (g *globals) printYAML(o *rlPlan) error {
	set, err := o.Setup(loadModel)
	if err != nil {
		return err
	}
	p, err := set.Phases()
	if err != nil {
		return err
	}
	return p.YAML(g.env.stdout)
}

func (g *globals) planPhases(o *rlPlan) error {
	f, err := os.Open(o.phases)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := rl.ReadPhases(f)
	if err != nil {
		return fmt.Errorf("%s: %w", o.phases, err)
	}
	name := ""
	if p.Pool != "" {
		name = "memory fraction"
	}
	if o.yaml {
		return p.YAML(g.env.stdout)
	}
	doc, fits := planner.Phases(o.phases, name, p, nil)
	return fitting(fits, g.printPlan(o.markdown, doc))
}
