// Package plantest finds models and GPUs by name for the tests of plans.
package plantest

import (
	"testing"

	"strandline/plan"
	"strandline/plan/model"
)

// Model is a model of the catalog; quant "" keeps the format of its files.
func Model(t testing.TB, name, quant string) *model.Model {
	t.Helper()
	m, err := model.Find(name, quant)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// GPU is a device of the table.
func GPU(t testing.TB, name string) *plan.GPU {
	t.Helper()
	g, err := plan.FindGPU(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
