package snapshot_test

import (
	"fmt"
	"strings"

	"strandline/torch/snapshot"
)

func ExampleRead() {
	const file = `{"segments": [], "device_traces": [[
		{"action": "alloc", "addr": 4096, "size": 512, "stream": 0,
		 "frames": [{"filename": "train.py", "line": 7, "name": "step"}]},
		{"action": "free_requested", "addr": 4096, "size": 512, "stream": 0, "frames": []}]]}`
	s, err := snapshot.Read(strings.NewReader(file), snapshot.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	trace := &s.Traces[0]
	for k := range trace.Len() {
		fmt.Println(trace.Action[k], trace.Size[k], "bytes")
		for _, f := range s.Stacks.Stack(trace.Stack[k]) {
			fmt.Printf("  %s:%d %s\n", f.File, f.Line, f.Function)
		}
	}
	// Output:
	// alloc 512 bytes
	//   train.py:7 step
	// free_requested 512 bytes
}
