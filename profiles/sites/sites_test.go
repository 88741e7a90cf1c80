package sites

import (
	"fmt"
	"strings"
	"testing"
)

// TestRead reads a text of each program: place, bytes in all, and kind.
func TestRead(t *testing.T) {
	for _, c := range []struct{ name, text, format, want string }{
		{"operators", "                Name    Self CPU %      Self CPU       CPU Mem  Self CPU Mem      CUDA Mem  Self CUDA Mem    # of Calls  \n---\n" +
			"               model         3.72%      58.775ms       4.07 Kb     -58.57 Kb      16.41 Gb     -14.43 Gb             1  \n" +
			"        aten::conv2d         0.23%       3.577ms           0 b           0 b       2.00 Gb           0 b             4  \n" +
			"         aten::empty         0.23%       3.577ms           0 b           0 b       1.00 Gb       1.00 Gb             2  \n",
			Operators, ":0 aten::conv2d 2147483648 CUDA Mem|:0 aten::empty 1073741824 CUDA Mem"},
		{"two snapshots", "[ Top 2 ]\n/app/train.py:12: size=20.0 MiB (+5120 KiB), count=4 (+1), average=5 MiB\n/app/x.py:3: size=9 B (+0 B), count=1 (+0), average=9 B\n",
			Objects, "/app/train.py:12  5242880 growth"},
		{"one snapshot", "#1: /app/train.py:12: size=2.0 GiB, count=4, average=5 MiB\n", Objects, "/app/train.py:12  2147483648 "},
		{"memory_profiler", "Filename: run.py\n\nLine #    Mem usage    Increment  Occurrences   Line Contents\n=====\n     3   38.8 MiB   38.8 MiB           1   @profile\n     4                                         def f():\n     5   46.5 MiB    7.5 MiB           1       a = [1] * (10 ** 6)\n     6   46.5 MiB    0.0 MiB           1       return a\n",
			Lines, "run.py:5 a = [1] * (10 ** 6) 7864320 "},
		{"memray", "🥇 Top 5 largest allocating locations (by size):\n\t- read:/app/data.py:7 -> 2.5MB\n", Totals, "/app/data.py:7 read 2621440 "},
	} {
		f, err := Read(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, u := range f.Uses {
			at := u.Stack[0]
			got = append(got, fmt.Sprintf("%s:%d %s %d %s", at.File, at.Line, at.Function, u.Size*u.Count, u.Kind))
		}
		if s := strings.Join(got, "|"); s != c.want || f.Format != c.format {
			t.Errorf("%s: %s: %s", c.name, f.Format, s)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("Name  Self CPU  CUDA Mem\naten::add  1  2 Gb\n"))
	f.Add([]byte("a.py:1: size=1 KiB (+1 KiB), count=1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := Read(strings.NewReader(string(data))); err == nil {
			for _, u := range got.Uses {
				if u.Size < 0 || u.Count < 1 {
					t.Errorf("%+v", u)
				}
			}
		}
	})
}
