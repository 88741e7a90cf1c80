package history

import (
	"strings"
	"testing"
	"time"
)

const text = `log 1 42
at 1000000000 before pause w%20 0
tag w%20 100 1 active pinned 0 100
part w%20 0 100 100 100 0
device 0 900 1000
at 2000000000 after pause w%20 0
tag w%20 100 1 paused pinned 100 0
part w%20 0 100 0 0 100
did pause w%20 100 500000000 0 1
device 0 1000 1000
note 2000000001 torch 0 1 2 3
note 2000000002 torch 0 4 5 6 2
note 2000000003 of another program
at 3000000000 before resume - 0
device 0 1000 1000
at 3000000000 after resume - 1
device 0 1000 1000
`

// TestRead reads a log, also where it is cut at any byte.
func TestRead(t *testing.T) {
	log, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if log.PID != 42 || len(log.Steps) != 2 || log.Cut || log.Full {
		t.Fatalf("%+v", log)
	}
	s := &log.Steps[0]
	if s.Do != "pause" || s.Tag != "w " || s.All || s.Ended.Sub(s.Began) != time.Second || s.After.Did.Seconds != 0.5 || len(s.Outside) != 1 || s.Outside[0] != (Outside{0, 1, 2, 3, 0}) {
		t.Errorf("%+v", s)
	}
	if s = &log.Steps[1]; !s.All || s.Kind != 1 || len(s.Prior) != 1 || s.Prior[0] != (Outside{0, 4, 5, 6, 2}) {
		t.Errorf("%+v", s)
	}
	for n := len("log 1 42\n"); n < len(text); n++ {
		if log, err := Read(strings.NewReader(text[:n])); err != nil || len(log.Steps) > 2 {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	for bad, want := range map[string]string{
		"":          "the log is empty",
		"log 2 1\n": "is not the beginning of a log",
		"log 1 x\n": "is not the beginning of a log",
		"log 1 1\nat 1 after pause - 0\nfull\nfull\n":                              "is not the head of a record that follows",
		"log 1 1\nat x before pause - 0\nfull\nfull\n":                             "is not a time",
		"log 1 1\nat 1 before dance - 0\nfull\nfull\n":                             "is neither a pause nor a resume",
		"log 1 1\nat 1 before pause - 0\ndevice 0 1\nat 1 after pause - 0\nfull\n": "a field is missing",
		"log 1 1\nnote 1 torch 0 1 2 -3\nfull\n":                                   "is not a note",
		"log 1 1\n" + strings.Repeat("x", 1<<20):                                   "token too long",
	} {
		if _, err := Read(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(text))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := Read(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		for i := range log.Steps {
			if log.Steps[i].Before == nil || log.Steps[i].After == nil {
				t.Fatal("a step without its states")
			}
		}
	})
}
