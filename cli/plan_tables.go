package cli

import (
	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
)

func newPlanGPUs(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "gpus",
		Short:   "List the known GPUs",
		Long:    "List the known GPUs: memory, bandwidth, links and dense operations.",
		Example: "  strandline plan gpus",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			doc := report.GPUTable{GPUTable: api.NewGPUTable()}
			return g.print(doc, doc.Text)
		},
	}
}

func newPlanModels(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "models",
		Short:   "List the built-in models",
		Long:    "List the built-in models, with their sizes.",
		Example: "  strandline plan models",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			models, err := api.NewModelTable()
			if err != nil {
				return err
			}
			doc := report.ModelTable{ModelTable: models}
			return g.print(doc, doc.Text)
		},
	}
}
