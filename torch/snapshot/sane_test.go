package snapshot_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

// wholeJSON reads a snapshot of JSON text.
func wholeJSON(t *testing.T, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Read(strings.NewReader(text), snapshot.Options{Size: int64(len(text))})
	if err != nil || s.Partial != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return s
}

const segmentOf = `{"device":%d,"address":%d,"total_size":%d,"allocated_size":0,"active_size":0,"requested_size":0,"stream":0,"segment_type":"large","segment_pool_id":[0,0],"is_expandable":false,"frames":[],"blocks":[]}`

// TestDevices leaves out what belongs to devices that cannot be.
func TestDevices(t *testing.T) {
	var list []string
	for _, device := range []int{-1, 0, 127, 128, 1 << 40} {
		list = append(list, fmt.Sprintf(segmentOf, device, 4096, 512))
	}
	s := wholeJSON(t, `{"segments":[`+strings.Join(list, ",")+`],"device_traces":[`+strings.Repeat("[],", 500)+`[]]}`)
	if n := len(s.Devices()); n != 2 || len(s.Segments) != 2 || len(s.Traces) != 128 {
		t.Errorf("%d devices, %d segments, %d traces", n, len(s.Segments), len(s.Traces))
	}
	if faults := strings.Join(s.Faults, "\n"); !strings.Contains(faults, "devices other than 0 to 127") {
		t.Errorf("%q", faults)
	}
}

// TestSaneSums clears what cannot be, so that no sum overflows and no address wraps.
func TestSaneSums(t *testing.T) {
	segments := func(list ...string) *snapshot.Snapshot {
		return wholeJSON(t, `{"segments":[`+strings.Join(list, ",")+`],"device_traces":[[{"action":"alloc","addr":0,"size":512,"stream":0,"time_us":-5,"frames":[]}]]}`)
	}
	s := segments(fmt.Sprintf(segmentOf, 0, 4096, 512), fmt.Sprintf(segmentOf, 0, uint64(1)<<63, 512), fmt.Sprintf(segmentOf, 0, ^uint64(0)-4095, 512)).Sane()
	if a, b, c := s.Segments[0].TotalSize, s.Segments[1].TotalSize, s.Segments[2].TotalSize; a != 512 || b != 512 || c != 0 || s.Traces[0].Time[0] != 0 {
		t.Errorf("sizes of %d, %d and %d bytes, at %d", a, b, c, s.Traces[0].Time[0])
	}
	many := segments(strings.TrimSuffix(strings.Repeat(fmt.Sprintf(segmentOf, 0, 4096, int64(snapshot.MaxSize))+",", 1000), ","))
	for range 9 { // 2^63 bytes and more
		many.Segments = append(many.Segments, many.Segments...)
	}
	var sum, before int64
	for _, g := range many.Sane().Segments {
		if sum, before = sum+g.TotalSize, sum; sum < before {
			t.Fatal("the sum overflows")
		}
	}
	if whole := segments(fmt.Sprintf(segmentOf, 0, 4096, 512)); whole.Segments[0].TotalSize != 512 {
		t.Error("a size is lost")
	}
}

// TestLongTexts cuts names and stacks when they are read. What is written has the
// names as they were.
func TestLongTexts(t *testing.T) {
	name := func(last string) string { return strings.Repeat("n", 5000) + last }
	event := func(frames string) string {
		return `{"action":"alloc","addr":4096,"size":512,"stream":0,"time_us":1,"user_metadata":"` + name("m") + `","frames":[` + frames + `]}`
	}
	frame := func(last string) string { return `{"filename":"a.py","line":1,"name":"` + name(last) + `"}` }
	deep := strings.Repeat(`{"filename":"a.py","line":1,"name":"f"},`, 3000) + `{"filename":"main.py","line":1,"name":"main"}`
	s := wholeJSON(t, `{"segments":[],"device_traces":[[`+event(frame("a"))+","+event(frame("b"))+","+event(deep)+`]],
		"external_annotations":[{"name":"`+name("x")+`","stage":"START","device":0,"time_us":1}]}`)
	e := &s.Traces[0].Events
	one, two := s.Stacks.Frames(e.Stack[0])[0], s.Stacks.Frames(e.Stack[1])[0]
	if f := s.Stacks.At(one); len(f.Function) > 1024 || f != s.Stacks.At(two) || one == two {
		t.Errorf("frames %d and %d have names of %d bytes", one, two, len(f.Function))
	}
	if n := len(s.Annotations[0].Name); n > 1024 || len(s.String(e.UserMetadata[0])) > 1024 {
		t.Errorf("an annotation's name of %d bytes", n)
	}
	all, short := s.Stacks.Stack(e.Stack[2]), s.Stacks.Short(e.Stack[2])
	if len(all) != 1024 || len(short) != 256 || all[1023].Function != "main" || short[255].Function != "main" || !strings.Contains(short[191].Function, "frames left out") {
		t.Errorf("a stack of %d frames, shown as %d", len(all), len(short))
	}
	if faults := strings.Join(s.Faults, "\n"); !strings.Contains(faults, "texts longer than 1024 bytes") || !strings.Contains(faults, "longer than 1024; the middle") {
		t.Errorf("%q", faults)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, last := range []string{"a", "b", "m", "x"} {
		if !bytes.Contains(b.Bytes(), []byte(name(last))) {
			t.Errorf("the name that ends in %s is not written whole", last)
		}
	}
	if b.Len() > 30_000 { // the one that two events have is there once
		t.Errorf("%d bytes are written", b.Len())
	}
}
