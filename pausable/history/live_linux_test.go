package history_test

import (
	"os"
	"path/filepath"
	"testing"

	"strandline/internal/test/live"
	"strandline/pausable/history"
)

// TestLog reads the log of a process that pauses and resumes.
func TestLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := live.Pausable(t, "../..", "STRANDLINE_MEM_LOG="+dir)
	for _, what := range []string{"pause weights", "resume weights", "pause"} {
		p.Tell(what)
	}
	if out := p.Tell("log " + filepath.Join(dir, "nowhere")); out != "refused" {
		t.Error("a log in a folder that is not there is ", out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"+history.Suffix))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := history.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if log.PID != p.PID || len(log.Steps) != 3 || log.Cut || log.Full {
		t.Fatalf("%+v", log)
	}
	const tag = 6 << 20
	pause, resume, all := &log.Steps[0], &log.Steps[1], &log.Steps[2]
	if pause.Do != "pause" || pause.Tag != "weights" || pause.Before.Held(0) != 3*tag || pause.After.Held(0) != 2*tag || pause.After.Did.Copied != tag {
		t.Errorf("%+v", pause)
	}
	if resume.Do != "resume" || resume.After.Held(0) != 3*tag || resume.Began.Before(pause.Ended) || resume.After.Devices[0].Free != pause.Before.Devices[0].Free {
		t.Errorf("%+v", resume)
	}
	if !all.All || !all.After.Idle() || all.Kind != 0 {
		t.Errorf("%+v", all)
	}
}
