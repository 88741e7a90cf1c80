package plan

import "testing"

func TestOrder(t *testing.T) {
	rows := []Checked{
		{Component: Weights, Planned: Range{99 * GiB, 100 * GiB}, Observed: 100*GiB + GiB/2}, // half a percent
		{Component: Activations, Planned: Range{GiB, 2 * GiB}, Observed: 3 * GiB},
		{Component: KVCache, Planned: Range{20 * GiB, 24 * GiB}, Observed: 18 * GiB},
		{Component: "rounded", Planned: Range{GiB, GiB}, Observed: GiB + 5, Rounding: 5},
		{Component: "tokens", Planned: Range{100, 200}, Observed: 212, Tokens: true, PerToken: GiB / 8},
	}
	for i := range rows {
		rows[i].Compare()
	}
	Order(rows)
	for i, want := range []struct {
		component     string
		differs, over bool
	}{{KVCache, true, false}, {"tokens", true, false}, {Activations, true, true}, {Weights, false, false}, {"rounded", false, false}} {
		if c := rows[i]; c.Component != want.component || c.Differs() != want.differs || c.Over() != want.over {
			t.Errorf("%d: %+v, differs %v, over %v; want %+v", i, c, c.Differs(), c.Over(), want)
		}
	}
	if rows[4].Off != 0 || rows[3].Off == 0 {
		t.Errorf("differences of %d and %d", rows[3].Off, rows[4].Off)
	}
}
