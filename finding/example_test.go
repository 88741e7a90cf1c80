package finding_test

import (
	"encoding/json"
	"fmt"

	"strandline/finding"
)

func ExampleFinding() {
	f := finding.Finding{
		Kind: finding.Leak, Severity: finding.Info, Confidence: 0.9, Title: "train.py:7 grows",
		Site:     &finding.Site{File: "train.py", Line: 7, Function: "step"},
		Bytes:    finding.Int(4096),
		Remedies: []finding.Remedy{finding.CodeChange("keep loss.item() instead of loss")},
	}
	text, _ := json.MarshalIndent(f.Remedies, "", "  ")
	fmt.Println(f.Title, *f.Bytes)
	fmt.Println(string(text))
	// Output:
	// train.py:7 grows 4096
	// [
	//   {
	//     "kind": "code",
	//     "text": "keep loss.item() instead of loss"
	//   }
	// ]
}
