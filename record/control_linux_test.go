package record

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestControlHostile asks a process that answers as no recorder does.
//
// long: one row an answer
func TestControlHostile(t *testing.T) {
	const folder = `{"pid":1,"folder":"/data/run"}`
	stats := func(devices ...string) string {
		return `{"time":1,"pid":1,"steps":1,"devices":[` + strings.Join(devices, ",") + `]}`
	}
	many := make([]string, maxDevices+1)
	for i := range many {
		many[i] = fmt.Sprintf(`{"device":%d}`, i)
	}
	snapshot := func(c *Control) error {
		path, err := c.Snapshot("call", time.Minute)
		if err == nil && path != "/data/run/trainer pid7/0001.pickle" {
			err = fmt.Errorf("path %q", path)
		}
		return err
	}
	figures := func(c *Control) error {
		if _, err := c.Stats(time.Second); err != nil {
			return err
		}
		_, err := c.Next(time.Second)
		return err
	}
	status := func(c *Control) error {
		_, err := c.Status()
		return err
	}
	const noPath, noFigures = "no path of a file in its recording", "figures that no recorder has"
	for _, c := range []struct {
		ask     func(*Control) error
		answers []string
		want    string // empty where it is believed
	}{
		{snapshot, []string{folder, `{"path":"/data/run/trainer pid7/0001.pickle"}`}, ""},
		{snapshot, []string{folder, `{"path":"--output=/etc/passwd"}`}, noPath},
		{snapshot, []string{folder, `{"path":"trainer/0001.pickle"}`}, noPath},
		{snapshot, []string{folder, `{"path":"/data/run/../../etc/shadow"}`}, noPath},
		{snapshot, []string{folder, `{"path":"/data/running/1.pickle"}`}, noPath},
		{snapshot, []string{folder, `{"path":"/data/run"}`}, noPath},
		{snapshot, []string{folder, `{"path":"/data/run/\u001b]0;x\u0007.pickle"}`}, noPath},
		{snapshot, []string{folder, `{"path":"/data/run/a\n--x"}`}, noPath},
		{snapshot, []string{folder, `{"path":"/data/run/\u202egpj.pickle"}`}, noPath},
		{snapshot, []string{folder, `{}`}, noPath},
		{snapshot, []string{`{"folder":"run"}`, `{"path":"run/1.pickle"}`}, noPath},
		{snapshot, []string{`{"error":"no"}`}, "no"},
		{figures, []string{stats(`{"device":0,"reserved_bytes":5}`, `{"device":127}`), stats()}, ""},
		{figures, []string{stats(), stats(`{"device":0,"reserved_bytes":-1}`)}, noFigures},
		{figures, []string{stats(`{"device":0,"allocated_bytes":9223372036854775807}`)}, noFigures},
		{figures, []string{stats(`{"device":0,"allocated_bytes":92233720368547758070}`)}, "cannot unmarshal"},
		{figures, []string{stats(`{"device":3}`, `{"device":3}`)}, noFigures},
		{figures, []string{stats(`{"device":-1}`)}, noFigures},
		{figures, []string{stats(`{"device":99999}`)}, noFigures},
		{figures, []string{stats(many...)}, noFigures},
		{figures, []string{`{"steps":-1}`}, noFigures},
		{figures, []string{`{"time":-1}`}, noFigures},
		{status, []string{folder}, ""},
		{status, []string{`{"steps":-1}`}, noFigures},
		{status, []string{`{"dumps":9223372036854775807}`}, noFigures},
		{status, []string{`{"rank":-7}`}, noFigures},
		{status, []string{`{"role":"` + strings.Repeat("x", 1<<20) + `"}`}, "more than 65536 bytes"},
	} {
		l, err := net.Listen("unix", fmt.Sprintf("@%s%d", sockets, os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for i, answer := range c.answers {
				if _, err := in.ReadBytes('\n'); err != nil && i == 0 {
					return
				}
				io.WriteString(conn, answer+"\n")
				if strings.Contains(answer, `"devices"`) { // which go on without a request
					for _, next := range c.answers[i+1:] {
						io.WriteString(conn, next+"\n")
					}
					break
				}
			}
			io.Copy(io.Discard, conn)
		}()
		control, err := Dial(t.Context(), os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		err = c.ask(control)
		control.Close()
		l.Close()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.200q: %v, want %q", c.answers, err, c.want)
		}
	}
}

// TestTakenName asks a recorder whose name another socket has: it is found, and notes that.
func TestTakenName(t *testing.T) {
	t.Parallel()
	ctx, ended := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	asked := make(chan error, 1)
	go func() {
		c, err := dialWritten(ctx, file)
		if err != nil {
			asked <- err
			return
		}
		defer c.Close()
		_, err = c.Snapshot("done", SnapshotTime) // the program waits for it
		asked <- err
	}()
	r := program{code: `
import os, socket, time
taken = socket.socket(socket.AF_UNIX)
taken.bind("\0strandline/%d" % os.getpid())
import torch
torch.cuda.allocate(1 << 20)
import strandline._recorder as recorder
with open(os.environ["PID"] + ".tmp", "w") as f:
    f.write(str(os.getpid()))
os.rename(os.environ["PID"] + ".tmp", os.environ["PID"])
end = time.time() + 300
while recorder.current().dumps < 1 and time.time() < end:
    time.sleep(0.01)
`, env: []string{"PID=" + file}}.run(t)
	ended()
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Notes, func(n Note) bool { return strings.Contains(n.Why, "has taken the name of the recorder's socket") }) {
		t.Errorf("notes are %v", r.Notes)
	}
}

// TestSilentClients has clients that ask for nothing give way to one that does.
func TestSilentClients(t *testing.T) {
	t.Parallel()
	ctx, ended := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	asked := make(chan error, 1)
	go func() {
		c, err := dialWritten(ctx, file)
		for range 100 {
			if err == nil {
				defer c.Close()
				c, err = dialWritten(ctx, file)
			}
		}
		if err == nil {
			defer c.Close()
			_, err = c.Snapshot("done", SnapshotTime)
		}
		asked <- err
	}()
	program{code: `
import os, time, torch
torch.cuda.allocate(1 << 20)
import strandline._recorder as recorder
with open(os.environ["PID"] + ".tmp", "w") as f:
    f.write(str(os.getpid()))
os.rename(os.environ["PID"] + ".tmp", os.environ["PID"])
end = time.time() + 60
while recorder.current().dumps < 1 and time.time() < end:
    time.sleep(0.01)
`, env: []string{"PID=" + file}}.run(t)
	ended()
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
}

// FuzzStats holds that figures that are believed can be added.
func FuzzStats(f *testing.F) {
	f.Add(`{"time":1,"steps":1,"devices":[{"device":0,"allocated_bytes":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s Stats
		if json.Unmarshal([]byte(text), &s) != nil || s.Check() != nil {
			return
		}
		var sum int64
		for _, d := range s.Devices {
			if sum += d.Reserved; d.Reserved < 0 || sum < 0 || d.Device < 0 {
				t.Error(text)
			}
		}
	})
}
