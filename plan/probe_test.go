package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strandline/model"
	"testing"
)

func TestProbe(t *testing.T) {
	data, _ := os.ReadFile("/work/shared/data/planner/model-configs.json")
	var all map[string]json.RawMessage
	json.Unmarshal(data, &all)
	for _, file := range []string{"ground-truth.csv", "training.csv"} {
		f, _ := os.Open("/work/shared/data/planner/" + file)
		rows, err := Against(f, func(id, q string) (*model.Model, error) {
			c, ok := all[id]
			if !ok {
				return nil, fmt.Errorf("no model %s", id)
			}
			return model.Parse(id, c, q)
		})
		if err != nil {
			t.Fatal(err)
		}
		sum := map[string]float64{}
		n := map[string]float64{}
		for _, r := range rows {
			if r.Observed == nil {
				continue
			}
			if r.Unplanned != "" {
				fmt.Println(r.ID, r.Component, "UNPLANNED", r.Unplanned)
				continue
			}
			in := ""
			if !r.Point && !r.Inside() {
				in = "OUTSIDE"
			}
			fmt.Printf("%s %-10s obs %10.4f plan %10.4f..%10.4f %+6.2f%% %s %s\n", r.ID, r.Component, *r.Observed, r.Low, r.High, *r.Error, in, r.Reason)
			if r.Reason == "" {
				sum[r.Component] += math.Abs(*r.Error)
				n[r.Component]++
			}
		}
		for k := range sum {
			fmt.Println(k, n[k], sum[k]/n[k])
		}
	}
}
