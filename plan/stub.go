package plan

import (
	"fmt"
	"strandline/model"
)

type GPU struct{}
type Range struct{ Low, High int64 }

func (s Serving) Activation() Range { return Range{} }
func trainingRow(r row, find func(id, quant string) (*model.Model, error)) Compared {
	return unplanned(r, "train_peak", "train_peak_gib", fmt.Errorf("x"))
}
