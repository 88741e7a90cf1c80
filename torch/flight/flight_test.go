package flight

import (
	"bytes"
	"strings"
	"testing"

	"strandline/torch/pickle"
)

// dumped is a dump in JSON of a rank of two that enqueued up to a collective and waits in it.
const dumped = `{"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "pg_status": {"0": {"last_enqueued_collective": "8"}},
"entries": [{"process_group": ["0", "default_pg"], "collective_seq_id": 7, "state": "completed", "time_created_ns": 5, "is_p2p": false, "retired": true},
{"process_group": ["0", "default_pg"], "collective_seq_id": 8, "state": "started", "time_created_ns": 6, "is_p2p": false, "retired": false, "time_discovered_completed_ns": null}]}`

// pickled is the same in pickle.
func pickled() []byte {
	var out bytes.Buffer
	e := pickle.NewEncoder(&out)
	e.Dict(2)
	e.String("pg_config")
	e.Dict(1)
	e.String("0")
	e.Dict(1)
	e.String("ranks")
	e.String("[0, 1]")
	e.String("entries")
	e.List(1)
	e.Dict(4)
	e.String("process_group")
	e.Tuple(2)
	e.String("0")
	e.String("default_pg")
	e.String("collective_seq_id")
	e.Int64(8)
	e.String("state")
	e.String("started")
	e.String("time_created_ns")
	e.Int64(6)
	e.Close()
	return out.Bytes()
}

// TestRead reads dumps in both forms, and leaves other files.
func TestRead(t *testing.T) {
	want := Group{World: 2, Enqueued: 8, Waiting: 8, Since: 6}
	for name, text := range map[string]string{"fr/nccl_trace_rank_1.json": dumped, "fr/nccl_trace_rank_1": string(pickled())} {
		d, err := Read(strings.NewReader(text), name)
		if err != nil {
			t.Fatal(name, err)
		}
		got := *d.Groups["0"]
		if want.Members = got.Members; d.Rank != 1 || len(d.Groups) != 1 || got != want || got.Members == 0 {
			t.Errorf("%s: rank %d, %+v", name, d.Rank, got)
		}
	}
	for name, text := range map[string]string{
		"a.json": dumped, "rank_1.json": `{"segments": []}`, "rank_2.json": dumped[:200], "rank_3": "rank 3 starts\n", "rank_4": "", "rank_5": string(pickled()[:60]),
	} {
		if d, err := Read(strings.NewReader(text), name); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// FuzzRead reads any bytes: nothing panics, and what is read keeps its rules.
func FuzzRead(f *testing.F) {
	f.Add([]byte(dumped))
	f.Add(pickled())
	f.Add([]byte(`{"entries": [[[[[[`))
	f.Fuzz(func(t *testing.T, in []byte) {
		d, err := Read(bytes.NewReader(in), "nccl_trace_rank_3")
		if err != nil {
			return
		}
		for name, g := range d.Groups {
			if name == "" || g.Waiting > g.Enqueued {
				t.Errorf("%q: %+v", name, g)
			}
		}
	})
}
