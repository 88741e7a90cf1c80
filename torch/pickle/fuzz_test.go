package pickle_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"strandline/torch/pickle"
)

// FuzzDecode takes any bytes: nothing may panic or allocate beyond the input,
// and what can be read must be the same after it was written and read again.
func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("../snapshot/testdata", "*.pickle"))
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && len(b) < 20_000 {
			f.Add(b)
		}
	}
	f.Add([]byte("](K\x07r\xff\xff\xff\xffK\x08\x94j\xff\xff\xff\xffh\x01e."))
	f.Add([]byte("(dp0\nS'a'\np1\nI1\nsVb\ng1\ns."))
	f.Add([]byte("\x8b\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01."))
	f.Fuzz(func(t *testing.T, in []byte) {
		if got := allocated(func() { pickle.Decode(bytes.NewReader(in), &sink{}) }); got > bound(len(in)) {
			t.Errorf("%d bytes of input make it allocate %d", len(in), got)
		}
		first := &tree{}
		v, err := pickle.Decode(bytes.NewReader(in), first)
		if err != nil || first.size(v, 1<<12, 40) < 0 {
			return
		}
		var out bytes.Buffer
		e := pickle.NewEncoder(&out)
		first.write(e, v)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		second := &tree{}
		w, err := pickle.Decode(&out, second)
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		first.loadable()
		if a, b := first.show(v), second.show(w); a != b {
			t.Errorf("read %s, then %s", a, b)
		}
	})
}
