package web

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"strandline/face/web/engine"
	"strandline/input"
	"strandline/judge/diagnosis"
	"strandline/torch/snapshot"
)

// TestSavedPageChooses saves a page of a hundred files of two devices, and counts what it
// holds: pictures of the highest peaks, and a sentence on what is left out.
func TestSavedPageChooses(t *testing.T) {
	const n = 100
	var sources []engine.Source
	for i := range n {
		var segments []string
		for device := range 2 {
			size := (i + 1) << 21
			segments = append(segments, fmt.Sprintf(`{"device":%d,"address":%d,"total_size":%d,"allocated_size":%[3]d,"active_size":%[3]d,"requested_size":%[3]d,"stream":0,"segment_type":"large","segment_pool_id":[0,0],"is_expandable":false,"frames":[],"blocks":[{"address":%[2]d,"size":%[3]d,"requested_size":%[3]d,"state":"active_allocated","frames":[]}]}`, device, 1<<40, size))
		}
		text := `{"segments":[` + strings.Join(segments, ",") + `],"device_traces":[[],[]]}`
		name := fmt.Sprintf("rank%d.json", i)
		sources = append(sources, engine.Source{Path: name, Named: true, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
			s, err := snapshot.Read(strings.NewReader(text), snapshot.Options{Name: name, Size: int64(len(text))})
			return s, nil, err
		}})
	}
	e := engine.New(input.Of(nil, input.Options{}), sources)
	if err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := len(e.Views()); all != 2*n {
		t.Fatalf("%d devices", all)
	}
	s := saver{ctx: t.Context(), asker: e, index: map[string][3]int{}}
	if err := s.session(e); err != nil {
		t.Fatal(err)
	}
	parts := s.parts()
	for i, data := range parts {
		var err error
		if parts[i], err = io.ReadAll(flate.NewReader(bytes.NewReader(data))); err != nil {
			t.Fatal(err)
		}
	}
	drawn, highest := 0, false
	for question := range s.index {
		if strings.HasPrefix(question, "device?") {
			drawn++
			highest = highest || strings.Contains(question, fmt.Sprintf("f=%d", n-1))
		}
	}
	said := false
	for _, part := range parts {
		said = said || bytes.Contains(part, []byte("Pictures of 152 other devices"))
	}
	if drawn != maxDrawn || !highest || !said {
		t.Errorf("%d devices are drawn, the highest %v, the rest is said to be left out %v", drawn, highest, said)
	}
	if n := bytes.Count(parts[0], []byte(`"judged"`)); n < 70 {
		t.Errorf("%d files are without a picture", n)
	}
}
