package text

import (
	"strings"
	"testing"
)

// TestTracebacks finds the innermost frame before an error.
func TestTracebacks(t *testing.T) {
	const plainTrace = `starting
Traceback (most recent call last):
  File "/home/me/train.py", line 41, in <module>
    main()
    ~~~~^^
  File "/home/me/model.py", line 88, in forward
    x = self.up(x)
torch.OutOfMemoryError: CUDA out of memory.
`
	ranks := `[rank0]:   File "a.py", line 1, in f
[rank1]:   File "b.py", line 2, in g
[rank0]:   File "c.py", line 3, in h
[rank1]:   File "d.py", line 4, in i
[rank0]: error
`
	for _, c := range []struct {
		text string
		line int64
		want []string // functions
	}{
		{plainTrace, 8, []string{"<module>", "forward"}},
		{plainTrace, 80, nil},
		{plainTrace, 1, nil},
		{strings.ReplaceAll(plainTrace, "  File", "12:34:56 ERROR   File"), 8, []string{"<module>", "forward"}},
		{ranks, 3, []string{"f", "h"}},
		{`  File "a.py", line x, in f`, 1, nil},
		{`  File "a.py", line 5`, 1, []string{""}},
	} {
		var found Tracebacks
		if _, err := Each(strings.NewReader(c.text), NewVocabulary(TracebackWords()), &found); err != nil {
			t.Fatal(err)
		}
		var got []string
		if x := found.Before(c.line); x != nil {
			for _, f := range x.Frames {
				got = append(got, f.Function)
			}
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
			t.Errorf("%q, line %d: %q, want %q", c.text, c.line, got, c.want)
		}
	}
	var found Tracebacks
	if _, err := Each(strings.NewReader(strings.Repeat("  File \"a.py\", line 1, in f\n", 1000)), NewVocabulary(TracebackWords()), &found); err != nil || len(found.Before(1000).Frames) != maxFrames {
		t.Error("frames are not bounded")
	}
}

// FuzzTracebacks reads frames from anything.
func FuzzTracebacks(f *testing.F) {
	f.Add([]byte("  File \"a.py\", line 1, in f\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var found Tracebacks
		if _, err := Each(strings.NewReader(string(data)), NewVocabulary(TracebackWords()), &found); err != nil {
			t.Fatal(err)
		}
		for _, x := range found.found {
			if len(x.Frames) == 0 || x.Frames[0].Line <= 0 {
				t.Fatalf("%+v", x)
			}
		}
	})
}
