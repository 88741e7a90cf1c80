package cli

import "github.com/spf13/cobra"

func newExport(g *globals) *cobra.Command { return &cobra.Command{Use: "export"} }
