package levels

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
)

// grows is the environment of a child that maps what it is told, with a file of shared memory.
const grows = "STRANDLINE_TEST_GROWS"

// grown is how much the child maps at once, in bytes.
const grown = 8 << 20

func init() {
	if file := os.Getenv(grows); file != "" {
		grow(file)
		os.Exit(0)
	}
}

func grow(file string) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	in, part := bufio.NewReader(os.Stdin), int64(0)
	for {
		os.Stdout.Write([]byte{'.'})
		order, err := in.ReadByte()
		if err != nil {
			return
		}
		var b []byte
		if order == 'a' {
			b, err = syscall.Mmap(-1, 0, grown, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		} else {
			b, err = syscall.Mmap(int(f.Fd()), part*grown, grown, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			part++
		}
		if err != nil {
			panic(err)
		}
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
	}
}

// A child maps what it is told, and stands still in between.
type child struct {
	t   *testing.T
	c   *exec.Cmd
	in  io.Writer
	out io.Reader
	id  sample.ID
}

func startChild(t *testing.T, file string) *child {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), grows+"="+file)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	k := &child{t: t, c: c, in: in, out: out, id: sample.ID{PID: c.Process.Pid}}
	t.Cleanup(k.end)
	k.stop()
	return k
}

// stop waits until the child has done what it was told, and stops it.
func (k *child) stop() {
	k.t.Helper()
	if _, err := io.ReadFull(k.out, make([]byte, 1)); err != nil {
		k.t.Fatal(err)
	}
	k.c.Process.Signal(syscall.SIGSTOP)
	for {
		st, err := procfs.Process(k.id.PID).Status()
		if err != nil {
			k.t.Fatal(err)
		}
		if strings.HasPrefix(st.State, "T") {
			return
		}
	}
}

func (k *child) tell(order string) {
	k.t.Helper()
	k.c.Process.Signal(syscall.SIGCONT)
	if _, err := io.WriteString(k.in, order); err != nil {
		k.t.Fatal(err)
	}
	k.stop()
}

func (k *child) end() {
	k.c.Process.Kill()
	k.c.Wait()
}

// sharedFile makes a file of shared memory.
func sharedFile(t *testing.T) string {
	t.Helper()
	f, err := os.CreateTemp("/dev/shm", "strandline-test-")
	if err != nil {
		live.Missing(t, "a folder of shared memory", err)
	}
	t.Cleanup(func() { os.Remove(f.Name()) })
	defer f.Close()
	if err := f.Truncate(4 * grown); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// TestReader reads growing processes as walks of their page tables do, and by counters where it can.
func TestReader(t *testing.T) {
	live.Waits(t)
	file := sharedFile(t)
	r := NewReader()
	one := startChild(t, file)
	swapped, _ := procfs.Swapped()
	alone, err := counted(procfs.Process(one.id.PID))
	if err != nil {
		t.Fatal(err)
	}
	counters := r.sums && swapped == 0 && alone.shared == 0 // the program itself can be in shared memory
	if !counters {
		t.Logf("the counters are not used: the kernel sums them up: %t, %d bytes in swap, %d shared", r.sums, swapped, alone.shared)
	}
	children := []*child{one}
	var before int64
	read := func(name string, walks bool, more int64) {
		t.Helper()
		var ids []sample.ID
		for _, k := range children {
			ids = append(ids, k.id)
		}
		last := r.walks[one.id]
		got, err := r.Read(ids, true)
		if err != nil || len(got) != len(ids) {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		var sum int64
		for _, k := range children {
			want, err := Held(procfs.Process(k.id.PID))
			if err != nil || got[k.id] != want {
				t.Errorf("%s: %d bytes, a walk has %d, %v", name, got[k.id], want, err)
			}
			sum += want
		}
		if diff := sum - before - more; diff < -1<<20 || diff > 1<<20 {
			t.Errorf("%s: %d bytes more, want %d", name, sum-before, more)
		}
		before = sum
		if now := r.walks[one.id]; counters && !now.agree || walks != (now != last) && counters {
			t.Errorf("%s: walked: %t, the counters agree: %t", name, now != last, now.agree)
		}
	}
	first, err := Held(procfs.Process(one.id.PID))
	if err != nil {
		t.Fatal(err)
	}
	read("at first", true, first)
	one.tell("a")
	read("anonymous memory", false, grown)
	one.tell("s")
	read("shared memory", true, grown)
	one.tell("a")
	read("anonymous memory beside it", false, grown)
	two := startChild(t, file)
	second, err := Held(procfs.Process(two.id.PID))
	if err != nil {
		t.Fatal(err)
	}
	children = append(children, two)
	read("another process", false, second)
	two.tell("s")
	read("which shares it", true, 0)
	two.tell("a")
	read("which grows", false, grown)
	two.end()
	children = children[:1]
	read("which ends", true, -second-grown)
	one.end()
	if got, err := r.Read([]sample.ID{one.id}, true); err != nil || len(got) != 0 {
		t.Errorf("of an ended process: %v, %v", got, err)
	}
}
