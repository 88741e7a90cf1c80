package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"strandline/internal/secret"
	"strandline/judge/diagnosis"
	"strandline/judge/tables"
	"strandline/profiles"
	"strandline/profiles/promql"
)

// storeOptions are what is asked of a store of metrics.
type storeOptions struct {
	server  string
	queries []string
	since   string
	step    string
}

func (o *storeOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.server, "prometheus", "", "judge series from the store at `URL` instead of files")
	c.Flags().StringArrayVar(&o.queries, "query", nil, "with --prometheus: the `PROMQL` of the levels (repeatable)")
	c.Flags().StringVar(&o.since, "since", "6h", "with --prometheus: judge the last `TIME`, such as 2d")
	c.Flags().StringVar(&o.step, "step", "", "with --prometheus: the `TIME` between points (default: about 500 points)")
}

// args checks the arguments: a store takes the place of files.
func (o *storeOptions) args(files cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch given := c.Flags().Changed; {
		case o.server == "" && (len(o.queries) > 0 || given("since") || given("step")):
			return errors.New("--query, --since and --step need a store: add --prometheus")
		case o.server == "":
			return files(c, args)
		case len(args) > 0:
			return errors.New("a file and a store are judged on their own: give files, or --prometheus")
		case len(o.queries) == 0:
			return errors.New("nothing to judge: add --query, such as --query 'sum by (pod) (container_memory_working_set_bytes)'")
		case given("capacity") || given("group"):
			return errors.New("--capacity and --group are for files; --limit is the size that the levels must not reach")
		}
		return nil
	}
}

// diagnoseStore judges series of a store.
func (g *globals) diagnoseStore(ctx context.Context, o *storeOptions, limit *int64, failOn string) error {
	q := promql.Query{Server: o.server, End: time.Now()}
	var err error
	if q.Since, err = timeFlag("since", o.since); err == nil && o.step != "" {
		q.Step, err = timeFlag("step", o.step)
	}
	if err != nil {
		return err
	}
	var all []tables.Series
	for _, q.Expr = range o.queries {
		f, err := promql.Read(ctx, q)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s: %w", secret.Text(q.Expr), err)
		}
		for _, note := range f.Notes {
			g.warn("%s", note)
		}
		all = append(all, tables.Series{Files: []*profiles.File{f}})
	}
	for _, s := range all {
		g.profilePartial(s.Files[0])
	}
	answer := diagnosis.OfSeries(all, limit)
	doc, text := diagnosed(nil, answer)
	return g.conclude(doc, text, answer, failOn)
}

// timeFlag reads a time as Prometheus writes it: 90m, 1h30m, 2d.
func timeFlag(name, text string) (time.Duration, error) {
	d, err := promql.ParseDuration(text)
	if err != nil || d == 0 {
		return 0, fmt.Errorf("--%s %q: want a time such as 90m, 6h or 2d", name, text)
	}
	return d, nil
}
