//go:build linux && amd64

package cudaalloc

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// program requests and releases, and states each time what the allocator's counters are.
const program = `import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
lib.request.restype = lib.reserved.restype = lib.allocated.restype = ctypes.c_size_t
lib.request.argtypes = lib.release.argtypes = [ctypes.c_size_t]
held = []
def report():
    with open(sys.argv[2] + ".tmp", "w") as f:
        f.write(f"{lib.allocated()} {lib.reserved()}")
    os.rename(sys.argv[2] + ".tmp", sys.argv[2])
print("ready", flush=True)
for line in open(sys.argv[3]):
    n = int(line)
    if n > 0:
        held.append(lib.request(n))
    elif held:
        lib.release(held.pop())
    else:
        lib.empty()
    report()
`

func TestGauge(t *testing.T) {
	python, dir := live.Tool(t, "python3"), t.TempDir()
	script, out, in := filepath.Join(dir, "train.py"), filepath.Join(dir, "out"), filepath.Join(dir, "in")
	if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, line := live.Start(t, "sh", "-c", `mkfifo "$0" && exec "$@"`, in, python, script, live.Caching(t, "Native"), out, in)
	if line != "ready" {
		t.Fatalf("it says %q", line)
	}
	orders, err := os.OpenFile(in, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	g, err := OpenGauge(procfs.Process(pid))
	live.Need(t, "reading the memory of another process", err)
	defer g.Close()
	if l, err := g.Read(); err != nil || len(l) != 0 {
		t.Errorf("before anything is requested: %v, %v", l, err)
	}
	for _, c := range []struct {
		order string // a size; 0 releases what was requested last, or if there is nothing, the cache
		want  []Level
	}{
		{"1000", []Level{{0, 1024, 2 << 20}}},
		{"30000000", []Level{{0, 1024 + 30000128, 2<<20 + 30<<20}}},
		{"0", []Level{{0, 1024, 2<<20 + 30<<20}}},
		{"0", []Level{{0, 0, 2<<20 + 30<<20}}},
		{"0", []Level{{0, 0, 0}}},
	} {
		os.Remove(out)
		if _, err := orders.WriteString(c.order + "\n"); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(out); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if l, err := g.Read(); err != nil || !slices.Equal(l, c.want) {
			text, _ := os.ReadFile(out)
			t.Errorf("after %s: %v, %v, and the program says %s", c.order, l, err, text)
		}
	}
	orders.Close()
	for { // it ends
		if _, err := g.Read(); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
}

func TestNoGauge(t *testing.T) {
	pid, _ := live.Start(t, "sh", "-c", "echo ready; exec sleep 1000")
	if g, err := OpenGauge(procfs.Process(pid)); !errors.Is(err, errNoTorch) {
		t.Errorf("%v, %v", g, err)
	}
}

// stats are counters in memory: of each array, what the small and the large pool have.
func stats(now [arrays][2]int64) []byte {
	b := make([]byte, 40) // a mutex
	counter := func(n int64) {
		for _, f := range []int64{n, n, 2 * n, n} {
			b = binary.LittleEndian.AppendUint64(b, uint64(f))
		}
	}
	for _, n := range now {
		counter(n[0] + n[1])
		counter(n[0])
		counter(n[1])
	}
	return append(b, make([]byte, 64)...)
}

func TestFindStats(t *testing.T) {
	good := [arrays][2]int64{{3, 2}, {1, 1}, {3, 3}, {1, 0}, {5120, 1 << 20}, {2 << 20, 20 << 20}, {5120, 2 << 20}, {100, 0}, {5000, 1 << 20}}
	for _, c := range []struct {
		name   string
		change func(*[arrays][2]int64)
		want   int
	}{
		{"counters", func(*[arrays][2]int64) {}, 40},
		{"none is above 0", func(n *[arrays][2]int64) { *n = [arrays][2]int64{} }, -1},
		{"more is active than reserved", func(n *[arrays][2]int64) { n[activeBytes][1] = 30 << 20 }, -1},
		{"a negative one", func(n *[arrays][2]int64) { n[allocation][0] = -1 }, -1},
		{"what the driver does not give", func(n *[arrays][2]int64) { n[reservedBytes][0] = 4097 << 9 }, -1},
		{"more blocks than fit", func(n *[arrays][2]int64) { n[allocation][0] = 1 << 20; n[active][0] = 1 << 20 }, -1},
	} {
		n := good
		c.change(&n)
		if got := findStats(stats(n)); got != c.want {
			t.Errorf("%s: at %d, want %d", c.name, got, c.want)
		}
	}
	b := stats(good)
	behind := 40 + (reservedBytes+1)*arraySize
	table := []byte("\x10\x20\x7f\x00\x00\x7f\x00\x00") // of pools, since 2.13
	if got := findStats(slices.Insert(slices.Clone(b), behind, slices.Repeat(table, 5)...)); got != 40 {
		t.Errorf("with a table: %d", got)
	}
	b[40+8]++ // the peak of all
	if got := findStats(b); got != 40 {
		t.Errorf("with another peak: %d", got)
	}
	b[40+16]++ // what came in all is not the sum of the pools
	if got := findStats(b); got >= 0 {
		t.Errorf("with a sum that is wrong: %d", got)
	}
}

// The counters of the device that is used must not be found within an unused one before it.
func TestRoom(t *testing.T) {
	devices := []uint64{0, 0x6000, 0x5000, 0x5000 + statsSize, 0x20000}
	for _, c := range []struct {
		device uint64
		want   int
	}{{0x5000, statsSize}, {0x5000 + statsSize, 0x1000 - statsSize}, {0x6000, deviceObject}, {0x20000, deviceObject}} {
		if got := room(devices, c.device); got != c.want {
			t.Errorf("at %#x: %d, want %d", c.device, got, c.want)
		}
	}
}

func FuzzFindStats(f *testing.F) {
	f.Add(stats([arrays][2]int64{{3, 2}, {1, 1}, {3, 3}, {1, 0}, {5120, 1 << 20}, {2 << 20, 20 << 20}, {5120, 2 << 20}, {100, 0}, {5000, 1 << 20}}))
	f.Add([]byte("too short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if at := findStats(b); at >= 0 && (at%8 != 0 || at+statsSize > len(b)) {
			t.Errorf("at %d of %d", at, len(b))
		}
	})
}
