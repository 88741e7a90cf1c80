package training

import (
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	enginelog "strandline/logs/engine"
)

func TestCheckStep(t *testing.T) {
	tr, err := Trainer("zero1")
	if err != nil {
		t.Fatal(err)
	}
	tr.Model = plantest.Model(t, "Llama-3.2-1B", "")
	st := tr.Normal().states(tr.Normal().hold(0))
	seen := map[string]int64{"parameters": int64(st.Parameters + st.Master), "optimizer": 2 * int64(st.Optimizer), "gradients": int64(st.Gradients)}
	rows, err := tr.CheckStep(seen)
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Component != "optimizer" || rows[0].Off <= 0 || rows[0].Cause == "" {
		t.Errorf("a doubled optimizer: %+v", rows)
	}
	log, err := enginelog.Scan(strings.NewReader("step:  7  loss:  9.1  memory: 48.87GiB(51.44%)  tps: 5,000\n"))
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := tr.CheckLog(log); err != nil || rows[0].Off == 0 {
		t.Errorf("a logged peak: %+v, %v", rows, err)
	}
}
