package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func forgeInt(n int) string { return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

func rec(pairs ...string) string { // a dict of keys and forged values
	out := "}("
	for i := 0; i < len(pairs); i += 2 {
		out += text(pairs[i]) + pairs[i+1]
	}
	return out + "u"
}

func items(s ...string) string { return "](" + strings.Join(s, "") + "e" }

func times(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

func same(s string) func(int) string { return func(int) string { return s } }

func forged(segments, traces, more string) string {
	return "\x80\x04}(" + text("segments") + segments + text("device_traces") + traces + more + "u."
}

func packed(parts func(w io.Writer)) string {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	parts(z)
	z.Close()
	return b.String()
}

// What is used in many places, or packed, costs no more than a multiple of the
// file; what could be read of it is there.
func TestReadBoundsSharing(t *testing.T) {
	ev := func(i int) string {
		return rec("action", text("alloc"), "addr", forgeInt(512*i), "size", forgeInt(512))
	}
	blk := func(i int) string {
		return rec("size", forgeInt(512), "requested_size", forgeInt(512), "address", forgeInt(512*i), "state", text("active_allocated"))
	}
	seg := func(blocks string) string {
		return rec("device", "K\x00", "address", "K\x00", "total_size", forgeInt(1<<20), "blocks", blocks)
	}
	const put, get = "q\x64", "h\x64" // memo entry 100
	const put1, get1 = "q\x65", "h\x65"
	past := rec("addr", "K\x05", "real_size", "K\x05")
	aged := func(h string) string { return rec("size", "K\x05", "state", text("inactive"), "history", h) }
	frame := rec("filename", text("a.py"), "line", "K\x01", "name", text("f"))
	framed := rec("action", text("alloc"), "addr", "K\x00", "size", "K\x01", "frames", get)
	large := "}(" + times(20_000, same("K\x07K\x07")) + "u" + put
	for _, c := range []struct {
		name, in string
		partial  bool
	}{
		{"trace of many devices", forged("]", items(items(times(2000, ev))+put+times(20_000, same(get))), ""), false},
		{"trace of one event of many devices", forged("]", items(items(ev(1))+put+times(100_000, same(get))), ""), false},
		{"empty trace of many devices", forged("]", items("]"+put+times(100_000, same(get))), ""), false},
		{"event many times", forged("]", items(items(ev(1)+put+times(300_000, same(get)))), ""), false},
		{"events many times of many devices", forged("]", items(items(ev(1)+put+times(50_000, same(get)))+put1+times(4000, same(get1))), ""), true},
		{"blocks of many segments", forged(items(seg(items(times(5000, blk))+put)+times(10_000, same(seg(get)))), "]", ""), true},
		{"block many times of many segments", forged(items(seg(items(blk(0)+put1+times(50_000, same(get1)))+put)+times(2000, same(seg(get)))), "]", ""), true},
		{"segment many times", forged(items(seg(items(times(1000, blk)))+put+times(100_000, same(get))), "]", ""), true},
		{"history of many blocks", forged(items(seg(items(aged(items(past+put1+times(50_000, same(get1)))+put)+times(5000, same(aged(get)))))), "]", ""), true},
		{"frames that grow", "\x80\x04" + frame + "q\x650]" + put + "0" + forged("]", items(items(times(20_000, same(get+get1+"a0"+framed)))), "")[2:], true},
		{"stack of many frames", forged("]", items(items(rec("action", text("alloc"), "addr", "K\x00", "size", "K\x01",
			"frames", items(frame+put1+times(200_000, same(get1))+put)))), ""), false},
		{"large dict many times", forged(items(large+times(50_000, same(get))), "]", ""), false},
		{"large dict in many traces", forged("]", items(large+times(50_000, same("]"+get+"a"))), ""), false},
		{"tuples in tuples", forged("]", "]", text("x")+")"+times(1_000_000, same("\x85"))), false},
		{"packed tuples", packed(func(w io.Writer) {
			io.WriteString(w, "\x80\x04")
			for range 60 {
				io.WriteString(w, times(1<<17, same(")\x850")))
			}
			io.WriteString(w, forged("]", "]", "")[2:])
		}), true},
		{"packed texts", packed(func(w io.Writer) {
			io.WriteString(w, "\x80\x04")
			for i := range 20 {
				io.WriteString(w, text(fmt.Sprint(i)+strings.Repeat("a", 10<<20))+"0")
			}
			io.WriteString(w, forged("]", "]", "")[2:])
		}), true},
		{"packed nothing", packed(func(w io.Writer) {
			io.WriteString(w, "\x80\x04"+times(30<<20, same("N0"))+forged("]", "]", "")[2:])
		}), true},
		{"lists in JSON", `{"segments":[],"device_traces":[],"x":[` + times(200_000, same("[1],")) + "1]}", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, err := snapshot.Read(strings.NewReader(c.in), snapshot.Options{Size: int64(len(c.in))})
			runtime.ReadMemStats(&after)
			// What is allocated at one time is about half of it all.
			if got, bound := after.TotalAlloc-before.TotalAlloc, uint64(2*(64<<20+64*len(c.in))); got > bound {
				t.Errorf("%d bytes of input make it allocate %d, not %d at most", len(c.in), got, bound)
			}
			if partial := err != nil || s.Partial != nil; partial != c.partial {
				t.Errorf("the file is read in part: %v (%v)", partial, err)
			}
			if err == nil && s.Partial != nil && !strings.Contains(s.Partial.Err.Error(), "than its size accounts for") {
				t.Errorf("reading ended for another reason: %v", s.Partial.Err)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	plain := testFile(t, "w21_writers.reference.train.pickle")
	whole := []byte(packed(func(w io.Writer) { w.Write(plain) }))
	sum := slices.Clone(whole)
	sum[len(sum)-5] ^= 1
	s, err := snapshot.Read(bytes.NewReader(sum), snapshot.Options{})
	if err != nil || s.Partial == nil {
		t.Fatalf("a wrong checksum: %v", err)
	}
	if got, want := s.Partial.Place()+": "+s.Partial.Err.Error(), fmt.Sprintf("byte %d of the unpacked data: gzip: invalid checksum", len(plain)); got != want {
		t.Errorf("a wrong checksum is %q, want %q", got, want)
	}
	first := slices.Clone(whole)
	first[10] |= 6 // a type of block that does not exist
	zstd := "\x28\xb5\x2f\xfd\x24\x05\xff\xff\xff\xff\xff\xff"
	for _, in := range []string{string(first), zstd} {
		if _, err := snapshot.Read(strings.NewReader(in), snapshot.Options{}); err == nil || strings.Count(err.Error(), "at byte") != 1 {
			t.Errorf("damage in the first block: %v", err)
		}
	}
	mark := "\xef\xbb\xbf"
	if s := readJSON(t, mark+`{"segments": [], "device_traces": [[]]}`); len(s.Traces) != 1 {
		t.Errorf("after a byte order mark there are %d traces", len(s.Traces))
	}
	cut := `{"segments": [` + segmentJSON(0) + `], !`
	bare, err1 := snapshot.Read(strings.NewReader(cut), snapshot.Options{})
	marked, err2 := snapshot.Read(strings.NewReader(mark+cut), snapshot.Options{})
	if err1 != nil || err2 != nil || marked.Partial.Offset != bare.Partial.Offset+3 {
		t.Errorf("damage after a byte order mark: %v, %v; without %v, %v", marked.Partial, err2, bare.Partial, err1)
	}
}

func TestOddAnnotations(t *testing.T) {
	for list, want := range map[string]string{
		"[1, 2]": `2 values of "external_annotations" of an unexpected type`,
		"[null]": `1 value of "external_annotations" of an unexpected type`,
	} {
		s := readJSON(t, `{"segments": [`+segmentJSON(0)+`], "device_traces": [], "external_annotations": `+list+`}`)
		if !slices.Contains(s.Faults, want) {
			t.Errorf("%s: faults are %q", list, s.Faults)
		}
	}
}
