package recording

import (
	"encoding/json"
	"strings"
	"testing"

	"strandline/host/store/journal"
)

// TestLongTexts keeps the beginnings of long texts of a recording.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("é", journal.MaxText)
	text, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Read(strings.NewReader(strings.ReplaceAll(`{"schema":"`+formerSchema+`","pid":7,"name":X,"rung":"bpf"}
{"document":{"processes":[{"pid":7,"command":X}],"findings":[{"kind":"leak","severity":"problem","title":X,"detail":["short",X],"remedies":[{"text":X,"setting":X}]}]}}
`, "X", string(text))))
	if err != nil || run.Partial != nil {
		t.Fatal(err, run.Partial)
	}
	f := run.Document.Findings[0]
	for what, got := range map[string]string{"name": run.Name, "command": run.Document.Processes[0].Command, "title": f.Title, "detail": f.Detail[1], "remedy": f.Remedies[0].Text, "setting": f.Remedies[0].Setting} {
		if want := long[:journal.MaxText] + "…"; got != want {
			t.Errorf("%s: %d bytes are kept, want %d", what, len(got), len(want))
		}
	}
	if f.Detail[0] != "short" || f.Kind != "leak" {
		t.Errorf("%+v", f)
	}
}
