//go:build linux && (amd64 || arm64)

package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
)

// TestReaderIsOfSources shows that the sources were not changed without rebuilding the
// reader. test.sh builds it where the same compilers are.
func TestReaderIsOfSources(t *testing.T) {
	live.BuiltOf(t, "host/gpu/nvml/build.sh", "object/reader.txt", "c/reader.c", "c/libc.c")
}

// A fake is a library in place of the driver's, in a folder.
type fake struct {
	t      testing.TB
	folder string
}

func newFake(t testing.TB, flags ...string) *fake {
	t.Helper()
	live.Waits(t)
	cc := live.Tool(t, "gcc")
	f := &fake{t, t.TempDir()}
	args := append([]string{"-shared", "-fPIC", "-w", "-o", filepath.Join(f.folder, "libnvidia-ml.so.1"), "testdata/fake.c"}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return f
}

// says sets what the library answers from now on.
func (f *fake) says(text string) {
	f.t.Helper()
	next := filepath.Join(f.folder, "next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(f.folder, "says")); err != nil {
		f.t.Fatal(err)
	}
}

// source is one that is as patient as the test, unless it is set otherwise.
func (f *fake) source(o Options) *Source {
	o.Env = append(os.Environ(), "LD_LIBRARY_PATH="+f.folder, "FAKE_NVML="+filepath.Join(f.folder, "says"))
	if o.Patience == 0 {
		o.Patience = time.Hour
	}
	if o.Start == 0 {
		o.Start = time.Hour
	}
	s := New(o)
	f.t.Cleanup(func() { s.Close() })
	return s
}

func read(t *testing.T, s *Source) []sample.Device {
	t.Helper()
	devices, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

const twoDevices = `
device GPU-a NVIDIA_H100_80GB_HBM3 85899345920 70000000000 15000000000 899345920
process compute 42 60000000000
process graphics 42 60000000000
process compute 43 5000000000
process mps 44 4000000000
device GPU-b NVIDIA_H100_80GB_HBM3 85899345920 1000000 85000000000 898345920
`

func TestRead(t *testing.T) {
	f := newFake(t)
	f.says("version 575.1" + twoDevices)
	s := f.source(Options{})
	d := read(t, s)
	if len(d) != 2 || d[0].UUID != "GPU-a" || d[1].UUID != "GPU-b" || d[1].Index != 1 || d[0].Name != "NVIDIA H100 80GB HBM3" || s.Driver() != "575.1" {
		t.Fatalf("driver %s, %+v", s.Driver(), d)
	}
	if *d[0].Total != 85899345920 || *d[0].Used != 70000000000 || *d[0].Free != 15000000000 || *d[0].Reserved != 899345920 {
		t.Errorf("memory %d, %d, %d, %d", *d[0].Total, *d[0].Used, *d[0].Free, *d[0].Reserved)
	}
	if p := d[0].Processes; len(p) != 3 || p[0].PID != 42 || *p[0].Used != 60000000000 || p[2].PID != 44 {
		t.Errorf("processes %+v", p)
	}
	f.says(strings.ReplaceAll(twoDevices, "70000000000", "71000000000"))
	if d = read(t, s); *d[0].Used != 71000000000 {
		t.Errorf("later: %d", *d[0].Used)
	}
	if len(d[1].Processes) != 0 || *d[1].Used != 1000000 {
		t.Errorf("the other: %+v", d[1])
	}
}

func TestOlderDriver(t *testing.T) {
	f := newFake(t, "-DOLD")
	f.says(twoDevices)
	d := read(t, f.source(Options{}))
	if *d[0].Used != 70899345920 || d[0].Reserved != nil || len(d[0].Processes) != 2 || *d[0].Processes[1].Used != 5000000000 {
		t.Errorf("%+v", d[0])
	}
}

func TestUnusualDevices(t *testing.T) {
	f := newFake(t)
	f.says(`
device GPU-a NVIDIA_GB10 0 0 0 0
error memory 3
process compute 42 600
device GPU-b NVIDIA_H100 1000 700 200 100
process compute 42 -1
device GPU-c NVIDIA_H100 1000 700 200 100
error device 15
device GPU-d NVIDIA_A100 1000 700 200 100
instance MIG-x NVIDIA_A100_MIG_1g.10gb 400 100 300 50
process compute 44 80
instance MIG-y NVIDIA_A100_MIG_2g.20gb 500 100 300 100
error processes 4
device GPU-e NVIDIA_H100 1000 -1 -1 -1
`)
	d := read(t, f.source(Options{}))
	if len(d) != 7 {
		t.Fatalf("%d devices: %+v", len(d), d)
	}
	if !d[0].Unified || d[0].Used != nil || *d[0].Processes[0].Used != 600 {
		t.Errorf("GB10: %+v", d[0])
	}
	if d[1].Processes[0].Used != nil || *d[1].Used != 700 {
		t.Errorf("a process whose memory is not available: %+v", d[1])
	}
	if d[2].Used != nil || !strings.Contains(d[2].Note, "fallen off the bus") {
		t.Errorf("a lost device: %+v", d[2])
	}
	if !d[3].Divided || len(d[3].Processes) != 0 || d[4].Index != 400 || *d[4].Parent != 3 || d[4].Processes[0].PID != 44 || *d[4].Used != 100 {
		t.Errorf("the parts of a device: %+v, %+v", d[3], d[4])
	}
	if d[5].Index != 402 || d[5].Label() != "device 3 part 2" || *d[5].Used != 100 || !strings.Contains(d[5].Note, "which processes") {
		t.Errorf("the second part: %+v", d[5])
	}
	if d[6].Index != 4 || d[6].Used != nil || d[6].Free != nil || *d[6].Total != 1000 || d[6].Note == "" {
		t.Errorf("memory that is not available: %+v", d[6])
	}
}

func TestNoDriver(t *testing.T) {
	f := newFake(t)
	for _, c := range []struct {
		says, want string
	}{
		{"init 18", "NVIDIA's driver cannot be asked: the loaded driver and its library are of different versions"},
		{"init 9", "NVIDIA's driver cannot be asked: the driver is not loaded"},
		{"count 999", "the driver does not say which devices there are: NVML error 999"},
	} {
		f.says(c.says)
		s := f.source(Options{})
		if _, err := s.Read(t.Context()); err == nil || errors.Is(err, ErrNoLibrary) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.says, err)
		}
		f.says(twoDevices) // the driver is repaired
		if d := read(t, s); len(d) != 2 {
			t.Errorf("after %s: %+v", c.says, d)
		}
	}
	none := New(Options{Start: time.Hour, Env: []string{"LD_LIBRARY_PATH=" + t.TempDir()}})
	defer none.Close()
	if _, err := none.Read(t.Context()); err != nil && !errors.Is(err, ErrNoLibrary) {
		t.Errorf("without the library: %v", err)
	} else if err == nil {
		t.Log("a driver of NVIDIA is installed: what happens without one is not tested")
	}
	text := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := New(Options{Start: time.Hour, Env: []string{"LD_LIBRARY_PATH=" + filepath.Dir(text)}})
	defer broken.Close()
	if _, err := broken.Read(t.Context()); !errors.Is(err, ErrNoLibrary) || !strings.Contains(err.Error(), text) {
		t.Errorf("with a broken library: %v", err)
	}
}

// readUntil reads until the devices are as they should be; a machine that is busy can
// make any call look hung meanwhile.
func readUntil(t *testing.T, s *Source, want string, ok func([]sample.Device) bool) {
	t.Helper()
	var last string
	for t.Context().Err() == nil {
		devices, err := s.Read(t.Context())
		if err == nil && ok(devices) {
			return
		}
		if now := fmt.Sprintf("%+v, %v", devices, err); now != last {
			t.Logf("not yet %s: %s", want, now)
			last = now
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never %s", want)
}

// TestHungDevice has a call for one device hang, and one for another crash.
func TestHungDevice(t *testing.T) {
	f := newFake(t)
	f.says(twoDevices)
	s := f.source(Options{Patience: 200 * time.Millisecond, Again: time.Nanosecond})
	all := func(d []sample.Device) bool { return len(d) == 2 && d[0].Used != nil && d[1].Used != nil }
	readUntil(t, s, "answered", all)
	for _, bad := range []string{"hang memory", "hang device", "hang processes", "crash"} {
		f.says(strings.Replace(twoDevices, "device GPU-b", bad+"\ndevice GPU-b", 1))
		readUntil(t, s, "known to fail with "+bad, func(d []sample.Device) bool {
			if len(d) != 2 || d[0].Used != nil || d[1].Used == nil {
				return false
			}
			if d[0].UUID != "GPU-a" || d[0].Note == "" {
				t.Errorf("what is left of it: %+v", d[0])
			}
			if d[0].Account(); d[0].Unowned != nil || d[0].Remainder != nil {
				t.Errorf("accounted for %+v", d[0])
			}
			return true
		})
		f.says(twoDevices)
		readUntil(t, s, "answered after "+bad, all)
	}
}

func TestHungStart(t *testing.T) {
	f := newFake(t)
	f.says("hang init")
	s := f.source(Options{})
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := s.Read(ctx); err == nil || errors.Is(err, ErrNoLibrary) {
		t.Errorf("while it starts: %v", err)
	}
	if s.now == nil {
		t.Fatal("the reader was ended before its time")
	}
	s.o.Start = time.Nanosecond
	if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "has not answered within") {
		t.Errorf("when it does not: %v", err)
	}
	f.says(twoDevices)
	s.o.Start = time.Hour
	if d := read(t, s); len(d) != 2 {
		t.Errorf("after it: %+v", d)
	}
}

// TestCallsThatNeverReturn has as many readers as may hang; no other is started.
func TestCallsThatNeverReturn(t *testing.T) {
	f := newFake(t)
	f.says(twoDevices)
	s := f.source(Options{})
	s.stuck.Store(maxStuck)
	if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "have not returned") {
		t.Error(err)
	}
	s.stuck.Store(0)
	read(t, s)
}

func BenchmarkRead(b *testing.B) {
	f := newFake(b, "-O2")
	var says strings.Builder
	for d := range 8 {
		fmt.Fprintf(&says, "device GPU-%d NVIDIA_H100 85899345920 70000000000 15000000000 899345920\n", d)
		for p := range 25 {
			fmt.Fprintf(&says, "process compute %d 2000000000\n", 1000+100*d+p)
		}
	}
	f.says(says.String())
	s := f.source(Options{})
	for b.Loop() {
		if d, err := s.Read(b.Context()); err != nil || len(d) != 8 {
			b.Fatal(d, err)
		}
	}
}
