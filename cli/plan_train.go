package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"strandline/run/planner"
)

func newPlanTrain(g *globals) *cobra.Command {
	var p planFlags
	var o planner.Training
	var check string
	c := &cobra.Command{
		Use:   "train",
		Short: "Plan the memory of a training step",
		Long: `Plan the peak of a training step on the GPU that needs most: parameters,
gradients, optimizer states, activations, logits and the buffers of sharding, at
the four moments at which memory may peak. The exit status is 1 where it does not
fit.`,
		Example: `  strandline plan train --model Llama-3.1-8B --gpu H100 --gpus 8 --batch 2 --seq 8192 --checkpointing selective-op
  strandline plan train --model Qwen2.5-7B --gpu RTX-4090 --lora 16 --lora-targets q,k,v,o --lora-base nf4`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if check == "" || p.page.on {
				return g.planned(c, &p, &o, o.Model)
			}
			if o.GPU == "" && o.Capacity == "" {
				o.Capacity = "80GiB" // a check needs no GPU
			}
			t, _, err := o.Setup(loadModel)
			if err != nil {
				return err
			}
			return g.planCheckStep(c.Context(), &p, t, check, o.Words())
		},
	}
	p.add(c, &o)
	p.checks(c)
	c.Flags().StringVar(&check, "check", "", "check `FILE`, a snapshot or the log of a trainer, against the plan")
	return c
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes only flags; got %q", c.CommandPath(), args[0])
	}
	return nil
}
