package sheet_test

import (
	"testing"

	"strandline/internal/sheet"
)

func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "train.py": "train.py", "-12": "-12", "-1.5e3": "-1.5e3", "12": "12",
		"=1+1": "'=1+1", "+1": "'+1", "@SUM(A1)": "'@SUM(A1)", "-cmd|' /C calc'!A0": "'-cmd|' /C calc'!A0",
		"\t=1": "'\t=1", "\r=1": "'\r=1", "a=1": "a=1",
	} {
		if got := sheet.Cell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
