package snapshot_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
	"strandline/torch/snapshot"
)

// obj is a dict of a file.
type obj = map[string]any

func with(o obj, more obj) obj {
	out := maps.Clone(o)
	maps.Copy(out, more)
	return out
}

const mib = 1 << 20

// segmentAt is a faultless segment of 2 MiB with an allocated block of 1 MiB.
func segmentAt(device, addr int) obj {
	return obj{
		"device": device, "address": addr, "total_size": 2 * mib, "allocated_size": mib, "active_size": mib,
		"requested_size": mib, "stream": 0, "segment_type": "small", "segment_pool_id": []int{0, 0},
		"is_expandable": false, "frames": []any{},
		"blocks": []obj{
			{"address": addr, "size": mib, "requested_size": mib, "state": "active_allocated", "frames": []any{}},
			{"address": addr + mib, "size": mib, "requested_size": 7, "state": "inactive", "frames": []any{}},
		},
	}
}

func block(segment obj, i int) obj { return segment["blocks"].([]obj)[i] }

// event is an event of PyTorch 2.5 at a time.
func event(time int) obj {
	return obj{"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": time, "frames": []any{}}
}

// file is a faultless file of PyTorch 2.5.
func file() obj {
	return obj{
		"segments":             []obj{segmentAt(0, 64*mib), segmentAt(0, 128*mib), segmentAt(1, 64*mib)},
		"device_traces":        [][]obj{{event(10), event(10), event(12)}, {event(5)}},
		"allocator_settings":   obj{"PYTORCH_CUDA_ALLOC_CONF": ""},
		"external_annotations": []any{},
	}
}

func read(t *testing.T, f any) *snapshot.Snapshot {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read(bytes.NewReader(text), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(f obj, segments []obj, traces [][]obj)
		want string // the fault, "" for none
	}{
		{"faultless", func(obj, []obj, [][]obj) {}, ""},
		{"total size", func(_ obj, g []obj, _ [][]obj) { g[1]["total_size"] = 3 * mib },
			"1 segment has blocks that do not add up to its total_size: segment 1 of device 0 at 0x8000000: 2,097,152 of 3,145,728 bytes"},
		{"a size that cannot be", func(_ obj, _ []obj, tr [][]obj) { tr[0][1]["size"] = snapshot.MaxSize + 1 },
			"1 size is larger than any memory: event 1 of device 0: 17,592,186,044,417 bytes"},
		{"two total sizes", func(_ obj, g []obj, _ [][]obj) { g[0]["total_size"], g[2]["total_size"] = 3*mib, 4*mib },
			"2 segments have blocks that do not add up to their total_size, first segment 0 of device 0 at 0x4000000: 2,097,152 of 3,145,728 bytes"},
		{"allocated size", func(_ obj, g []obj, _ [][]obj) { g[2]["allocated_size"] = 0 },
			"1 segment has allocated blocks that do not add up to its allocated_size: segment 0 of device 1 at 0x4000000: 1,048,576 of 0 bytes"},
		{"no allocated size", func(_ obj, g []obj, _ [][]obj) { delete(g[2], "allocated_size") }, ""},
		{"gap", func(_ obj, g []obj, _ [][]obj) { block(g[0], 1)["address"] = 65*mib - 512 },
			"1 block does not begin where the one before it ends: block 1 of segment 0 of device 0 at 0x4000000: at 0x40ffe00, not at 0x4100000"},
		{"outside", func(_ obj, g []obj, _ [][]obj) { block(g[0], 1)["address"] = 66 * mib },
			"1 block lies outside its segment: block 1 of segment 0 of device 0 at 0x4000000: 1,048,576 bytes at 0x4200000"},
		{"blocks without addresses", func(_ obj, g []obj, _ [][]obj) {
			delete(block(g[0], 0), "address")
			delete(block(g[0], 1), "address")
		}, ""},
		{"order of addresses", func(_ obj, g []obj, _ [][]obj) { g[0], g[1] = g[1], g[0] },
			"1 segment is out of the order of addresses: segment 1 of device 0 at 0x4000000, after one at 0x8000000"},
		{"order of devices", func(_ obj, g []obj, _ [][]obj) { g[0], g[1], g[2] = g[2], g[0], g[1] },
			"1 segment is out of the order of devices: segment 0 of device 0 at 0x4000000, after one of device 1"},
		{"overlap", func(_ obj, g []obj, _ [][]obj) { maps.Copy(g[1], segmentAt(0, 65*mib)) },
			"1 segment overlaps another: segment 1 of device 0 at 0x4100000 and segment 0 of device 0 at 0x4000000"},
		{"negative size of a segment", func(_ obj, g []obj, _ [][]obj) { g[0]["active_size"] = -1 },
			"1 size is below zero: segment 0 of device 0 at 0x4000000: active_size is -1"},
		{"negative size of a block", func(_ obj, g []obj, _ [][]obj) { block(g[0], 0)["requested_size"] = -1 },
			"1 size is below zero: block 0 of segment 0 of device 0 at 0x4000000: 1,048,576 bytes, of which -1 requested"},
		{"negative size of an event", func(_ obj, _ []obj, tr [][]obj) { tr[0][1]["size"] = -512 },
			"1 size is below zero: event 1 of device 0: -512 bytes"},
		{"time", func(_ obj, _ []obj, tr [][]obj) { tr[0][2]["time_us"] = 9 },
			"1 event is earlier than the one before it: event 2 of device 0, by 1 µs"},
		{"unknown time", func(_ obj, _ []obj, tr [][]obj) { delete(tr[0][1], "time_us") }, ""},
		{"releases", func(f obj, _ []obj, tr [][]obj) {
			delete(f, "external_annotations")
			tr[0][0]["user_metadata"] = ""
		}, "the file has user_metadata, which PyTorch writes since 2.10, but not external_annotations, which it writes since 2.5: it was edited or written by something else"},
	} {
		f := file()
		c.edit(f, f["segments"].([]obj), f["device_traces"].([][]obj))
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if got := read(t, f).Faults; !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, want)
		}
	}
}

// rulesBroken are the faults but those of single values, of which the last may
// have been cut.
func rulesBroken(s *snapshot.Snapshot) []string {
	return slices.DeleteFunc(slices.Clone(s.Faults), func(f string) bool { return strings.Contains(f, "an unexpected type") })
}

// TestFaultsOfCuts cuts a faultless file at every byte: what is left may be
// little, but no rule is broken.
func TestFaultsOfCuts(t *testing.T) {
	text, err := json.Marshal(file())
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for end := range text {
		s, err := snapshot.Read(bytes.NewReader(text[:end]), snapshot.Options{})
		if err != nil {
			continue
		}
		read++
		if s.Partial == nil {
			t.Errorf("cut at %d: not partial", end)
		}
		if broken := rulesBroken(s); len(broken) > 0 {
			t.Errorf("cut at %d: %q", end, broken)
		}
	}
	if read == 0 {
		t.Error("nothing could be read of any cut file")
	}
}

// corpus are the files of a folder of recorded snapshots, which is named by
// STRANDLINE_CORPUS and has the folders torch (of PyTorch 2.6, faultless) and
// wild (of all versions).
func corpus(t *testing.T, patterns ...string) (out []string) {
	t.Helper()
	root := live.Given(t, "STRANDLINE_CORPUS")
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join(root, p))
		if err != nil || len(files) == 0 {
			t.Fatalf("no file matches %s (%v)", p, err)
		}
		out = append(out, files...)
	}
	return out
}

var isSnapshot = regexp.MustCompile(`\.(pickle|snapshot\.json)(\.gz|\.zst)?$|__[0-9a-f]{8}\.json$`)

// eachOf reads the snapshots among the files.
func eachOf(t *testing.T, files []string, f func(t *testing.T, s *snapshot.Snapshot)) {
	for _, path := range files {
		if !isSnapshot.MatchString(path) {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := snapshot.Open(path, snapshot.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f(t, s)
		})
	}
}

func TestFaultsOfCorpus(t *testing.T) {
	eachOf(t, corpus(t, "torch/*.pickle", "torch/writers/*", "wild/*"), func(t *testing.T, s *snapshot.Snapshot) {
		edited := strings.Contains(t.Name(), "edited") || strings.Contains(t.Name(), "truncated")
		if edited != (len(s.Faults) > 0) {
			t.Errorf("edited: %v, faults: %q", edited, s.Faults)
		}
	})
}

// TestFaultsOfCutCorpus cuts files of each writer at many places.
func TestFaultsOfCutCorpus(t *testing.T) {
	for _, path := range corpus(t, "torch/writers/*") {
		if !isSnapshot.MatchString(path) || !strings.HasSuffix(path, ".pickle") && !strings.HasSuffix(path, ".json") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		const cuts = 150
		for i := range cuts {
			end := len(data) * i / cuts
			s, err := snapshot.Read(bytes.NewReader(data[:end]), snapshot.Options{})
			if err != nil {
				continue
			}
			if broken := rulesBroken(s); len(broken) > 0 {
				t.Errorf("%s cut at %d: %q", filepath.Base(path), end, broken)
			}
		}
	}
}

// TestSane looks at what is left of sizes that cannot be.
func TestSane(t *testing.T) {
	s := read(t, file())
	if s.Sane() != s || s.BadSizes != nil {
		t.Errorf("a faultless file is changed: %q", s.BadSizes)
	}
	f := file()
	segments, traces := f["segments"].([]obj), f["device_traces"].([][]obj)
	segments[1]["total_size"], traces[0][1]["size"] = int64(1)<<62, -512
	block(segments[2], 0)["size"] = int64(1) << 62
	s = read(t, f)
	sane := s.Sane()
	if len(s.BadSizes) != 2 || sane.Segments[1].TotalSize != 0 || sane.Segments[2].Blocks[0].Size != 0 || sane.Traces[0].Size[1] != 0 {
		t.Errorf("%q, %+v, %v", s.BadSizes, sane.Segments, sane.Traces[0].Size)
	}
	if s.Segments[1].TotalSize != 1<<62 || s.Segments[2].Blocks[0].Size != 1<<62 || s.Traces[0].Size[1] != -512 {
		t.Error("the file itself was changed")
	}
	if sane.Segments[0].TotalSize != 2*mib || sane.Traces[0].Size[0] != 512 || sane.Sane() != sane {
		t.Error("more than these was changed")
	}
}
