package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/run/planner"
)

// pageOptions are the flags that open a plan as a page.
type pageOptions struct {
	on    bool
	serve serveOptions
}

func (o *pageOptions) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.on, "page", false, "open a form that plans as you type")
	f.BoolVar(&o.serve.noOpen, "no-open", false, "with --page: do not open the browser")
	f.StringVar(&o.serve.listen, "listen", "", "with --page: serve on `PORT`, and print the ssh command")
}

// planPage serves the page, with the flags of a command filled in.
func (g *globals) planPage(c *cobra.Command, o *planFlags, model string) error {
	name := c.Name()
	if name == "plan" {
		name = "serve"
	}
	mode := planner.Modes[slices.IndexFunc(planner.Modes, func(m planner.Mode) bool { return m.Name == name })]
	state := url.Values{"mode": {name}}
	var err error
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed:
		case slices.Contains(mode.Fields, f.Name):
			state.Set(f.Name, f.Value.String())
		case !slices.Contains([]string{"page", "no-open", "listen"}, f.Name):
			err = cmp.Or(err, fmt.Errorf("--%s cannot be used with --page", f.Name))
		}
	})
	if err == nil && model != "" { // what cannot be read is reported before the page is served
		_, err = loadModel(model, "")
	}
	if err != nil {
		return err
	}
	return g.serve(c.Context(), o.page.serve, page{asker: planner.NewPage(model, loadModel), index: "plan.html", state: "#" + state.Encode()})
}
