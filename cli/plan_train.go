package cli

import (
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
		Long: `Plan the peak of a training step on the GPU that needs most. It adds parameters,
gradients, optimizer states, activations, logits and sharding buffers at the four
moments of a possible peak. The exit status is 1 if it does not fit.`,
		Example: `  strandline plan train --model Llama-3.1-8B --gpu H100 --gpus 8 --seq 8192
  strandline plan train --model Qwen2.5-7B --gpu RTX-4090 --lora 16 \
    --lora-targets q,k,v,o --lora-base nf4`,
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
