//go:build linux && amd64

package bpf

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"strandline/host/calls/event"
	"strandline/internal/test/eventtest"
	"strandline/internal/test/live"
)

// TestMain lets the test binary be the process that is watched, or the tracer
// that is killed.
func TestMain(m *testing.M) {
	eventtest.Main()
	switch os.Getenv("STRANDLINE_TEST_ROLE") {
	case "calls":
		makeCalls()
	case "driver-tracer":
		beDriverTracer()
	case "tracer":
		beTracer()
	default:
		goleak.VerifyTestMain(m)
	}
}

// start gives a tracer, or skips the test where there is none.
func start(t *testing.T) *Tracer {
	t.Helper()
	live.Traces(t)
	tr, err := Start()
	live.Need(t, "BPF", err)
	t.Cleanup(tr.Close)
	return tr
}

// A role is this binary as another process, which does a step for every line
// that it is sent.
type role struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func play(t *testing.T, name string) *role {
	t.Helper()
	live.Traces(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "STRANDLINE_TEST_ROLE="+name, "GOGC=off")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	r := &role{cmd, in, bufio.NewReader(out)}
	r.step(t, "")
	return r
}

// step sends a line, unless it is empty, and waits for the answer.
func (r *role) step(t *testing.T, line string) string {
	t.Helper()
	if line != "" {
		if _, err := io.WriteString(r.in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	line, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

const testFlags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS

func call(number uintptr, a ...uintptr) uintptr {
	a = append(a, 0, 0, 0, 0, 0, 0)
	r, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		os.Stderr.WriteString(errno.Error() + "\n")
		os.Exit(1)
	}
	return r
}

// testSize is a size that the Go runtime maps nothing of.
const testSize = 77 * pageSize

func makeCalls() {
	in := bufio.NewScanner(os.Stdin)
	os.Stdout.WriteString("ready\n")
	none := ^uintptr(0)
	for in.Scan() {
		switch in.Text() {
		case "churn":
			for range 1000 {
				call(unix.SYS_MUNMAP, call(unix.SYS_MMAP, 0, testSize, 3, testFlags, none), testSize)
			}
		case "child":
			exec.Command("/bin/true").Run()
		case "sizes":
			for n := uintptr(1); n < 1<<14; n = n*5/4 + 1 {
				call(unix.SYS_MMAP, 0, n*pageSize, 0, testFlags|unix.MAP_NORESERVE, none)
			}
		case "many":
			for range manyMaps {
				call(unix.SYS_MMAP, 0, testSize, 3, testFlags, none)
			}
		case "whole-after-fixed":
			p := call(unix.SYS_MMAP, 0, testSize, 3, testFlags, none)
			call(unix.SYS_MMAP, p, pageSize, 1, testFlags|unix.MAP_FIXED, none)
			call(unix.SYS_MUNMAP, p, testSize)
		}
		os.Stdout.WriteString("done\n")
	}
}

// poll returns what happened up to now.
func poll(t *testing.T, tr *Tracer) *event.Batch {
	t.Helper()
	all := &event.Batch{}
	for from := event.Now(); all.Until < from; time.Sleep(time.Millisecond) {
		b, err := tr.Poll()
		if err != nil {
			t.Fatal(err)
		}
		b.Events, b.Samples = append(all.Events, b.Events...), append(all.Samples, b.Samples...)
		all = b
	}
	return all
}

func of(b *event.Batch, op event.Op) (out []event.Event) {
	for _, e := range b.Events {
		if e.Op == op {
			out = append(out, e)
		}
	}
	return out
}

func TestChurnCostsNoEvent(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	if err := tr.Watch(r.Process.Pid); err != nil {
		t.Fatal(err)
	}
	poll(t, tr)
	r.step(t, "churn")
	b := poll(t, tr)
	for _, e := range b.Events {
		if e.Len == testSize {
			t.Errorf("an event of churn: %+v", e)
		}
	}
	if b.Paired < 1000 || b.PairedBytes < 1000*testSize || b.Lost > 0 {
		t.Errorf("%d pairs of %d bytes, %d lost", b.Paired, b.PairedBytes, b.Lost)
	}
}

// TestSource holds BPF to what every source has to do.
func TestSource(t *testing.T) {
	eventtest.Run(t, func(t *testing.T, command []string) (event.Source, *eventtest.Program) {
		tr, p := start(t), eventtest.Launch(t, command)
		if err := tr.Watch(p.PID); err != nil {
			t.Fatal(err)
		}
		return tr, p
	})
}

// TestSizeClass has the kernel and Go number sizes alike.
func TestSizeClass(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	tr.Watch(r.Process.Pid)
	poll(t, tr)
	r.step(t, "sizes")
	sizes := map[uint64]bool{}
	for _, e := range of(poll(t, tr), event.Map) {
		sizes[e.Len] = true
		if e.Class != event.SizeClass(e.Len) {
			t.Errorf("%d bytes are of class %d in the kernel and %d here", e.Len, e.Class, event.SizeClass(e.Len))
		}
	}
	if len(sizes) < 30 {
		t.Errorf("%d sizes are seen", len(sizes))
	}
}

// TestBrokenObjectIsAnError shows that an object that cannot be loaded anywhere is
// not taken for a machine without BPF, which would skip every test.
func TestBrokenObjectIsAnError(t *testing.T) {
	packed := object
	defer func() { object = packed }()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string][]byte{
		"header":       append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 100)...),
		"cut":          whole[:len(whole)/2],
		"instructions": scrambled(t, whole),
	} {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(broken)
		w.Close()
		object = b.Bytes()
		tr, err := Start()
		if err == nil {
			tr.Close()
		}
		if err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// scrambled is the object with other instructions in its programs.
func scrambled(t *testing.T, whole []byte) []byte {
	t.Helper()
	start(t) // or skip: only a kernel that has BPF refuses it
	out := slices.Clone(whole)
	f, err := elf.NewFile(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 {
			copy(out[s.Offset:], []byte{0x79, 0x10, 0xf0, 0xff, 0, 0, 0, 0}) // reads before the context
		}
	}
	return out
}

// manyMaps are more than can wait for their end.
const manyMaps = 3 << 13

// The kernel's numbers of threads are others than those of a namespace, and a call
// that is seen twice must be found again by the same ones.
func TestSourceInANamespace(t *testing.T) {
	live.Traces(t)
	start(t) // or skip
	apart := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command(apart[0], append(apart[1:], "true")...).CombinedOutput(); err != nil {
		live.Missing(t, "namespaces", fmt.Sprintf("%v: %s", err, out))
	}
	if out, err := exec.Command(apart[0], append(apart[1:], os.Args[0], "-test.run=^TestSource$", "-test.v")...).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestManyWait makes mappings that fall on the same places: each is reported once.
func TestManyWait(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	tr.Watch(r.Process.Pid)
	poll(t, tr)
	r.step(t, "many")
	b := poll(t, tr)
	at := map[uint64]int{}
	for _, e := range of(b, event.Map) {
		if e.Len == testSize {
			at[e.Addr]++
		}
		if e.PID != uint32(r.Process.Pid) || at[e.Addr] > 1 {
			t.Fatalf("reported again, or of another: %+v", e)
		}
	}
	if len(at) != manyMaps || b.Lost > 0 {
		t.Errorf("%d of %d mappings are reported, %d events lost", len(at), manyMaps, b.Lost)
	}
}

func TestPairingKnowsWhatIsInside(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	tr.Watch(r.Process.Pid)
	poll(t, tr)
	r.step(t, "whole-after-fixed")
	b := poll(t, tr)
	maps, unmaps := 0, 0
	for _, e := range b.Events {
		switch {
		case e.Op == event.Map && (e.Len == testSize || e.Flags&unix.MAP_FIXED != 0 && e.Prot == 1):
			maps++
		case e.Op == event.Unmap && e.Len == testSize:
			unmaps++
		}
	}
	if maps != 2 || unmaps != 1 {
		t.Errorf("%d mappings and %d unmappings in %+v", maps, unmaps, b.Events)
	}
}

func TestChildrenAreFollowed(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	tr.Watch(r.Process.Pid)
	poll(t, tr)
	r.step(t, "child")
	b := poll(t, tr)
	for _, f := range of(b, event.Fork) {
		var seen []event.Op
		for _, e := range b.Events {
			if e.PID == f.Child() && (len(seen) == 0 || seen[len(seen)-1] != e.Op) {
				seen = append(seen, e.Op)
			}
		}
		if len(seen) >= 3 && seen[0] == event.Exec && slices.Contains(seen, event.Map) && seen[len(seen)-1] == event.Exit {
			return
		}
		t.Logf("of the child %d: %v", f.Child(), seen)
	}
	t.Error("no child is seen to begin, to map and to end")
}

// TestFullTable counts the children that do not fit into the table.
func TestFullTable(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	tr.Watch(r.Process.Pid)
	const behindAll = 1 << 22 // processes have lower numbers
	for i := range 16383 {
		if err := tr.Watch(behindAll + 1 + i); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Watch(behindAll); !errors.Is(err, unix.E2BIG) {
		t.Errorf("one more: %v", err)
	}
	r.step(t, "child")
	if b := poll(t, tr); b.Unwatched == 0 || b.Lost > 0 {
		t.Errorf("%d children are not watched, %d events lost", b.Unwatched, b.Lost)
	}
}

// TestInterpreterIsForgotten ends a process that has one: another can have its
// number.
func TestInterpreterIsForgotten(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	pid := r.Process.Pid
	tr.Watch(pid)
	if err := tr.Python(pid, event.PythonLayout{Runtime: 1}); err != nil {
		t.Fatal(err)
	}
	r.Process.Kill()
	r.Wait()
	var p event.PythonLayout
	if err := tr.collection.Maps["strand_python"].Lookup(uint32(pid), &p); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("found %+v, %v", p, err)
	}
}

// beTracer names what it has in the kernel and holds it until it is killed.
func beTracer() {
	tr, err := Start()
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	tr.Watch(os.Getpid())
	fmt.Println(ids(tr))
	time.Sleep(time.Minute)
	tr.Close()
}

// ids are the numbers that the kernel has given to the programs and maps of a
// tracer.
func ids(tr *Tracer) []string {
	var out []string
	for _, p := range tr.collection.Programs {
		if info, err := p.Info(); err == nil {
			id, _ := info.ID()
			out = append(out, fmt.Sprintf("p%d", id))
		}
	}
	for _, m := range tr.collection.Maps {
		if info, err := m.Info(); err == nil {
			id, _ := info.ID()
			out = append(out, fmt.Sprintf("m%d", id))
		}
	}
	return out
}

// listed are all programs and maps that the kernel has.
func listed() map[string]bool {
	out := map[string]bool{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if err != nil {
			break
		}
		id = next
		out[fmt.Sprintf("p%d", id)] = true
	}
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			break
		}
		id = next
		out[fmt.Sprintf("m%d", id)] = true
	}
	return out
}

func countListed(some []string) (n int) {
	all := listed()
	for _, id := range some {
		if all[id] {
			n++
		}
	}
	return n
}

// TestNothingIsLeft closes a tracer, and kills one. Neither leaves a program or
// a map in the kernel.
func TestNothingIsLeft(t *testing.T) {
	live.Traces(t)
	tr := start(t)
	some := ids(tr)
	if n := countListed(some); n != len(some) || n < 15 {
		t.Fatalf("%d of %d programs and maps of a running tracer are listed", n, len(some))
	}
	tr.Close()
	gone(t, "Close", some)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "STRANDLINE_TEST_ROLE=tracer")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	some = strings.Fields(strings.Trim(line, "[]\n"))
	if n := countListed(some); n != len(some) || n < 15 {
		t.Errorf("%d of %d programs and maps are listed of the tracer that says %q", n, len(some), line)
	}
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, "kill -9", some)
}

func gone(t *testing.T, how string, some []string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if countListed(some) == 0 {
			return
		}
	}
	t.Errorf("%s leaves %d of %v behind", how, countListed(some), some)
}
