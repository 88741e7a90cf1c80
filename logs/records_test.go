package logs

import (
	"encoding/json"
	"strings"
	"testing"

	"strandline/logs/failure"
)

// kernelKill is what a kernel logs of a kill at the limit of a cgroup, with a long list of
// processes between the limit and the victim.
var kernelKill = []string{
	"[ 5.1] loader invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
	"[ 5.2] memory: usage 4194304kB, limit 4194304kB, failcnt 12",
	"[ 5.3] Tasks state (memory values in pages):",
	"[ 5.3] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
	"[ 5.3] [    901]     0   901   900000   600000  9000000        0             0 loader",
	"[ 5.3] [    902]     0   902   400000   300000  4000000        0             0 loader",
	"[ 5.4] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/job,task_memcg=/job/a,task=loader,pid=901,uid=0",
	"[ 5.4] Memory cgroup out of memory: Killed process 901 (loader) total-vm:3600000kB, anon-rss:2400000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:9000kB oom_score_adj:0",
}

// TestRecords reads logs that programs wrote as a list of records over several lines: the
// statement is that of the lines alone, on the line of the file that has it.
func TestRecords(t *testing.T) {
	type record map[string]any
	for name, of := range map[string]func(line string) record{
		"flat": func(line string) record {
			return record{"log": line + "\n", "stream": "stderr", "time": "2026-01-02T03:04:05Z"}
		},
		"nested": func(line string) record {
			return record{"labels": record{"app": "a"}, "line": record{"level": "info", "message": line}, "ts": 5}
		},
		"journal": func(line string) record {
			return record{"MESSAGE": line, "PRIORITY": "6", "_HOSTNAME": "node-1", "_PID": "1", "__CURSOR": "s=1;i=2"}
		},
	} {
		for _, lines := range [][]string{kernelKill, append([]string{"step 1 of 9", "step 2 of 9"}, wrappedLines(message26)...)} {
			var list []record
			for _, line := range lines {
				list = append(list, of(line))
			}
			text, err := json.MarshalIndent(list, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			want, err := Scan(strings.NewReader(strings.Join(lines, "\n") + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Scan(strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Failures) != len(want.Failures) || got.OOM.Count != want.OOM.Count {
				t.Errorf("%s: %d statements and %d messages, want %d and %d", name, len(got.Failures), got.OOM.Count, len(want.Failures), want.OOM.Count)
				continue
			}
			for i, f := range got.Failures {
				w := want.Failures[i]
				if f.Kind != w.Kind || len(f.Figures) != len(w.Figures) || f.Words["victim"] != w.Words["victim"] {
					t.Errorf("%s: %+v, want %+v", name, f, w)
				}
				if at := strings.Split(string(text), "\n")[f.Line-1]; !strings.Contains(at, w.Quote[:20]) {
					t.Errorf("%s: line %d is %q", name, f.Line, at)
				}
			}
			if o := got.OOM.Last(); o != nil && figuresOf(o) != figuresOf(want.OOM.Last()) {
				t.Errorf("%s: %s, want %s", name, figuresOf(o), figuresOf(want.OOM.Last()))
			}
		}
	}
}

// wrappedLines is a text in lines of some width.
func wrappedLines(text string) []string { return strings.Split(wrapped(text, 90, " "), "\n") }

// TestObjectsAreNoRecords keeps each line of an object that is not a list of records.
func TestObjectsAreNoRecords(t *testing.T) {
	const pod = `{
  "kind": "Pod",
  "status": {
    "conditions": [
      {"message": "containers with unready status"}
    ],
    "containerStatuses": [
      {
        "name": "trainer",
        "lastState": {
          "terminated": {
            "exitCode": 137,
            "reason": "OOMKilled"
          }
        }
      }
    ]
  }
}
`
	got, err := Scan(strings.NewReader(pod))
	if err != nil || len(got.Failures) != 2 || got.Failures[0].Line != 12 || got.Failures[1].Line != 13 || got.Failures[1].Kind != failure.PodKilled {
		t.Errorf("%+v, %v", got.Failures, err)
	}
}
