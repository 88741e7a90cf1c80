package cli

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
	"strandline/pausable/state"
)

// mem runs `strandline mem` with --json.
func mem(t *testing.T, p *live.Paused, want int, args ...string) *api.Mem {
	t.Helper()
	stdout, stderr, code := run(append([]string{"mem", args[0], "--pid", strconv.Itoa(p.PID), "--json"}, args[1:]...)...)
	d := &api.Mem{}
	if err := json.Unmarshal([]byte(stdout), d); err != nil || code != want || d.Schema != api.MemSchema || d.PID != p.PID || d.Do != args[0] {
		t.Fatalf("%v: exit status %d, %v: %s%s", args, code, err, stdout, stderr)
	}
	return d
}

// TestMem pauses and resumes a process.
func TestMem(t *testing.T) {
	t.Parallel()
	p := live.Pausable(t, "..")
	const tag, total = 6 << 20, 64 << 20
	d := mem(t, p, exitOK, "status")
	if len(d.Tags) != 3 || d.Tags[1].Name != "kv cache" || d.Tags[1].State != state.Active || d.Tags[0].Backup != "pinned" || d.Tags[2].Backup != "pageable" ||
		d.Tags[0].Bytes != tag || d.Tags[0].Blocks != 2 || d.Device.Free != total-3*tag || d.Device.Total != total {
		t.Errorf("%+v", d)
	}
	if d = mem(t, p, exitOK, "status", "--tag", "states"); len(d.Tags) != 1 {
		t.Errorf("%+v", d)
	}
	if d = mem(t, p, exitOK, "pause", "--tag", "kv cache"); d.Tags[1].State != state.Paused || *d.Device.Released != tag || d.Seconds == nil {
		t.Errorf("%+v", d)
	}
	if d = mem(t, p, exitOK, "pause"); *d.Device.Released != 2*tag || d.Tags[2].BackupBytes != tag || d.Tags[1].BackupBytes != 0 {
		t.Errorf("%+v", d)
	}
	p.Tell("take " + strconv.Itoa(total-2*tag))
	d = mem(t, p, exitProblem, "resume")
	if d.Failure == nil || *d.Failure.Device != 0 || d.Failure.Needed != 3*tag || d.Failure.Available != 2*tag || d.Tags[0].State != state.Paused || *d.Device.Released != 0 {
		t.Errorf("%+v", d)
	}
	d = mem(t, p, exitProblem, "plan")
	if len(d.Steps) != 1 || d.Steps[0].Fits || d.Steps[0].Devices[0].Free != -tag || len(d.Findings) != 1 || d.Findings[0].Kind != "resume-short" {
		t.Errorf("%+v", d)
	}
	d = mem(t, p, exitOK, "plan", "resume=weights", "resume=states", "pause=weights", "resume=kv cache")
	if len(d.Steps) != 4 || d.Steps[1].Devices[0].Free != 0 || d.Steps[1].Devices[0].Used != total || d.Steps[2].Saved == 0 || *d.Steps[3].Tag != "kv cache" || d.Tags[0].State != state.Paused {
		t.Errorf("%+v", d)
	}
	stdout, _, code := run("mem", "resume", "--pid", strconv.Itoa(p.PID))
	if code != exitProblem || !strings.Contains(stdout, "REFUSED  the resume: ") || !strings.Contains(stdout, "12 MiB of 64 MiB free") {
		t.Errorf("exit status %d: %s", code, stdout)
	}
	p.Tell("give")
	if d = mem(t, p, exitOK, "resume"); *d.Device.Released != -3*tag || d.Tags[0].State != state.Active || d.Kept != tag {
		t.Errorf("%+v", d)
	}
	p.Tell("check")
	for _, c := range []struct{ args, want string }{
		{"pause --tag other", "there is no tag other"}, {"status --tag other", "has no tag other"}, {"plan resume=other", "there is no tag other"},
		{"plan sleep=weights", "want pause=TAG"}, {"plan resume=", "want pause=TAG"}, {"plan --tag weights pause", "not both"}, {"status more", "takes only flags"},
	} {
		args := append([]string{"mem"}, strings.Fields(c.args)...)
		if _, stderr, code := run(append(args, "--pid", strconv.Itoa(p.PID))...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d: %s", c.args, code, stderr)
		}
	}
	if _, stderr, code := run("mem", "status", "--pid", strconv.Itoa(os.Getpid())); code != exitUsage || !strings.Contains(stderr, "has no pausable memory") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

// TestMemProgress has the line of a pause that takes long.
func TestMemProgress(t *testing.T) {
	for want, d := range map[string]*state.Doing{
		"pause under way": {Do: state.Pause, Total: 15 << 30},
		"pause under way: 5 GiB of 15 GiB copied, 4 s left": {Do: state.Pause, Total: 15 << 30, Done: 5 << 30},
		"resume under way: 15 GiB of 15 GiB copied":         {Do: state.Resume, Total: 15 << 30, Done: 15 << 30},
	} {
		if got := memProgress(d, 2*time.Second); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestHolders names who holds a device.
func TestHolders(t *testing.T) {
	live.Waits(t)
	t.Parallel()
	self := os.Getpid()
	small, large := int64(1<<30), int64(2<<30)
	seen := &sample.Sample{
		Devices:   []sample.Device{{Index: 0, Processes: []sample.Holding{{PID: self, Used: &small}, {PID: 1 << 30}, {PID: 1<<30 + 1, Used: &large}}}},
		Processes: []sample.Process{{PID: 1<<30 + 1, Command: "python train.py"}},
	}
	d := api.MemDevice{Holders: []api.MemHolder{}}
	holders(&d, procfs.Process(self), seen)
	if d.Process == nil || *d.Process != small || *d.Index != 0 || len(d.Holders) != 3 || d.Holders[0].Command != "python train.py" || d.Holders[2].Bytes != nil {
		t.Errorf("%+v", d)
	}
	d.Device.Total = 4 << 30
	doc := &report.Mem{Mem: api.Mem{PID: self, Do: "resume", Failure: &api.MemFailure{Text: "no room"}, Devices: []api.MemDevice{d}}}
	var text strings.Builder
	doc.Text(&text, report.Style{})
	for _, want := range []string{"REFUSED  the resume: no room", "2 GiB  1073741825  python train.py", "this process"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

// TestMemIsDocumented looks up every field in docs/json.md.
func TestMemIsDocumented(t *testing.T) {
	t.Parallel()
	p := live.Pausable(t, "..")
	named := documented(t, "../docs/json.md")
	mem(t, p, exitOK, "pause")
	p.Tell("take 60000000")
	for _, args := range [][]string{{"status"}, {"plan"}, {"resume"}} {
		stdout, _, _ := run("mem", args[0], "--pid", strconv.Itoa(p.PID), "--json")
		var doc any
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
			t.Fatal(err)
		}
		for _, field := range fields(doc, nil) {
			if !named[field] {
				t.Errorf("mem %s prints the field %s, which docs/json.md does not name", args[0], field)
			}
		}
	}
}
