package text

import "testing"

// TestSpeakerOf reads what launchers put before lines.
func TestSpeakerOf(t *testing.T) {
	who := func(set func(*Speaker)) Speaker {
		s := nobody
		set(&s)
		return s
	}
	for line, want := range map[string]struct {
		who  Speaker
		rest string
	}{
		"[rank11]: Traceback":                {who(func(s *Speaker) { s.Rank = 11 }), " Traceback"},
		"[default3]:[rank11]: x":             {who(func(s *Speaker) { s.Tag, s.Word, s.Rank = 3, "default", 11 }), " x"},
		"[rank3]:[rank11]: x":                {who(func(s *Speaker) { s.Tag, s.Word, s.Rank = 3, "rank", 11 }), " x"},
		"007: x":                             {who(func(s *Speaker) { s.Label = 7 }), " x"},
		"[1,3]<stderr>:x":                    {who(func(s *Speaker) { s.Label = 3 }), "x"},
		"[prterun-a-5@1,3]<stdout>: x":       {who(func(s *Speaker) { s.Label = 3 }), " x"},
		"[3] x":                              {who(func(s *Speaker) { s.Label = 3 }), " x"},
		"node7: x":                           {who(func(s *Speaker) { s.Host = "node7" }), "x"},
		"trainer-3  | x":                     {who(func(s *Speaker) { s.Host = "trainer-3" }), "x"},
		"rank3 | x":                          {who(func(s *Speaker) { s.Tag, s.Word = 3, "rank" }), "x"},
		"llm-train-worker-0 pytorch x":       {who(func(s *Speaker) { s.Host = "llm-train-worker-0" }), "x"},
		"train-0 pytorch [rank3]: x":         {who(func(s *Speaker) { s.Host, s.Rank = "train-0", 3 }), " x"},
		"a-5f9-x2k main [default1]: x":       {who(func(s *Speaker) { s.Host, s.Tag, s.Word = "a-5f9-x2k", 1, "default" }), " x"},
		"step-3 loaded [3] x":                {nobody, "step-3 loaded [3] x"},
		"[pod/a-worker-1/pytorch] [mpi2]: x": {who(func(s *Speaker) { s.Host, s.Tag, s.Word = "a-worker-1", 2, "mpi" }), " x"},
		"2026-01-02T03:04:05.6789Z stderr F [default1]: x": {who(func(s *Speaker) { s.Tag, s.Word = 1, "default" }), " x"},
		"(WorkerDict pid=77, ip=10.0.0.1) [rank8]: x":      {who(func(s *Speaker) { s.Actor, s.PID, s.IP, s.Rank = "WorkerDict", 77, "10.0.0.1", 8 }), " x"},
		"[0]:":                          {nobody, "[0]:"},
		"[2025-03-02 22:15:30,609] x":   {nobody, "[2025-03-02 22:15:30,609] x"},
		"[Rank 3] (after 2 iterations)": {nobody, "[Rank 3] (after 2 iterations)"},
		"RuntimeError: x":               {nobody, "RuntimeError: x"},
		"12:30:01 x":                    {nobody, "12:30:01 x"},
	} {
		got, rest, _ := SpeakerOf([]byte(line))
		if got != want.who || string(rest) != want.rest {
			t.Errorf("%q: %+v %q, want %+v %q", line, got, rest, want.who, want.rest)
		}
	}
}
