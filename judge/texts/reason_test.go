package texts

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/logs"
)

// TestOtherReason takes signal 9 for memory only where Kubernetes does not state another reason.
func TestOtherReason(t *testing.T) {
	for text, want := range map[string]finding.Kind{
		"Last State: Terminated\n  Reason: Error\n  Exit Code: 137\n":                              finding.Ended,
		"  Exit Code: 137\n  Reason: Error\n":                                                      finding.Ended,
		`{"terminated": {"exitCode": 137, "reason": "Error"}}` + "\n":                              finding.Ended,
		"[worker-0] terminated with exit code (137). Reason [Error]. Message: .\n":                 finding.Ended,
		"Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137\n":                          finding.OutOfMemory,
		"Reason: Error\nExit Code: 137\nSystem OOM encountered, victim process: python3, pid: 7\n": finding.OutOfMemory,
		"the job ended with exit code 137\n":                                                       finding.OutOfMemory,
	} {
		read, err := logs.Scan(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		s := &Statement{Text: &read}
		found := s.Judge(Options{})
		if len(found) != 1 || found[0].Kind != want {
			t.Errorf("%q: %+v, want %s", text, found, want)
		}
	}
}
