//go:build linux && amd64

package bpf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strandline/host/event"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be the process that is watched, or the tracer
// that is killed.
func TestMain(m *testing.M) {
	switch os.Getenv("STRANDLINE_TEST_ROLE") {
	case "calls":
		makeCalls()
	case "driver-tracer":
		beDriverTracer()
	case "tracer":
		beTracer()
	default:
		os.Exit(m.Run())
	}
}

// start gives a tracer, or skips the test where the kernel refuses it.
func start(t *testing.T) *Tracer {
	t.Helper()
	tr, err := Start()
	if err != nil {
		t.Skipf("BPF is not to be had here: %v", err)
	}
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
	said, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(said)
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
		case "all":
			p := call(unix.SYS_MMAP, 0, testSize, 3, testFlags, none)
			p = call(unix.SYS_MREMAP, p, testSize, 2*testSize, unix.MREMAP_MAYMOVE)
			call(unix.SYS_MPROTECT, p, pageSize, 0)
			call(unix.SYS_MADVISE, p+pageSize, pageSize, unix.MADV_DONTNEED)
			call(unix.SYS_MUNMAP, p, pageSize)
			call(unix.SYS_BRK, call(unix.SYS_BRK, 0)+testSize)
			f := call(unix.SYS_MEMFD_CREATE, uintptr(ptr("x\x00")), 0)
			call(unix.SYS_FTRUNCATE, f, testSize)
			m := call(unix.SYS_SHMGET, 0, testSize, unix.IPC_CREAT|0o600)
			at := call(unix.SYS_SHMAT, m)
			call(unix.SYS_SHMCTL, m, unix.IPC_RMID)
			call(unix.SYS_SHMDT, at)
		case "child":
			exec.Command("/bin/true").Run()
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

func poll(t *testing.T, tr *Tracer) *event.Batch {
	t.Helper()
	time.Sleep(time.Duration(margin) + 2*time.Millisecond)
	b, err := tr.Poll()
	if err != nil {
		t.Fatal(err)
	}
	return b
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

func TestEveryCallIsTold(t *testing.T) {
	tr := start(t)
	r := play(t, "calls")
	tr.Watch(r.Process.Pid)
	tr.Budget(100)
	poll(t, tr)
	r.step(t, "all")
	b := poll(t, tr)
	one := func(op event.Op, fits func(e *event.Event) bool) event.Event {
		t.Helper()
		for _, e := range of(b, op) {
			if fits(&e) {
				return e
			}
		}
		t.Errorf("no such event %d among %+v", op, of(b, op))
		return event.Event{}
	}
	made := one(event.Map, func(e *event.Event) bool { return e.Len == testSize && e.Prot == 3 && e.Flags == testFlags })
	if !made.Sampled || made.PID != uint32(r.Process.Pid) || made.Place.IP == 0 || made.Place.Caller == 0 {
		t.Errorf("got %+v", made)
	}
	for _, e := range of(b, event.Map) {
		if e.Class != event.SizeClass(e.Len) {
			t.Errorf("%d bytes are of class %d in the kernel and %d here", e.Len, e.Class, event.SizeClass(e.Len))
		}
	}
	moved := one(event.Remap, func(e *event.Event) bool { return e.Old == made.Addr && e.OldLen == testSize && e.Len == 2*testSize })
	if moved.Took == 0 || moved.Took > uint32(time.Second) {
		t.Errorf("mremap took %d ns", moved.Took)
	}
	one(event.Protect, func(e *event.Event) bool { return e.Addr == moved.Addr && e.Len == pageSize && e.Prot == 0 })
	one(event.Advise, func(e *event.Event) bool { return e.Addr == moved.Addr+pageSize && e.Flags == unix.MADV_DONTNEED })
	one(event.Unmap, func(e *event.Event) bool { return e.Addr == moved.Addr && e.Len == pageSize })
	one(event.Break, func(e *event.Event) bool { return e.Addr != 0 })
	file := one(event.Memfd, func(e *event.Event) bool { return e.FD > 0 })
	one(event.Truncate, func(e *event.Event) bool { return e.FD == file.FD && e.Len == testSize })
	at := one(event.Attach, func(e *event.Event) bool { return e.Addr != 0 })
	one(event.Detach, func(e *event.Event) bool { return e.Addr == at.Addr })
	for i := 1; i < len(b.Events); i++ {
		if b.Events[i].Time < b.Events[i-1].Time {
			t.Error("events are out of order")
		}
	}
	for _, s := range b.Samples {
		if s.Time != made.Time {
			continue
		}
		if s.Addr != made.Addr || s.Regs.IP != made.Place.IP || s.Base > s.Regs.SP || s.Regs.SP-s.Base >= pageSize || len(s.Stack) < pageSize {
			t.Errorf("the sample is at %#x with %+v and %d bytes from %#x", s.Addr, s.Regs, len(s.Stack), s.Base)
		} else if order.Uint64(s.Stack[s.Regs.SP-s.Base:]) != made.Place.Caller {
			t.Error("the word on top of the copied stack is not the caller")
		}
		return
	}
	t.Error("the stack of mmap was not copied")
}

// manyMaps are more than can wait for their end.
const manyMaps = 3 << 13

// The kernel's numbers of threads are others than those of a namespace, and a call
// that is seen twice must be found again by the same ones.
func TestEveryCallIsToldInANamespace(t *testing.T) {
	start(t) // or skip
	apart := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command(apart[0], append(apart[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no namespace can be made here: %v: %s", err, out)
	}
	if out, err := exec.Command(apart[0], append(apart[1:], os.Args[0], "-test.run=^TestEveryCallIsTold$", "-test.v")...).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestManyWait makes mappings that fall on the same places: each is told once.
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
			t.Fatalf("told again, or of another: %+v", e)
		}
	}
	if len(at) != manyMaps || b.Lost > 0 {
		t.Errorf("%d of %d mappings are told, %d events lost", len(at), manyMaps, b.Lost)
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

// TestFullTable counts the children for which there is no room.
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
	said, _ := bufio.NewReader(out).ReadString('\n')
	some = strings.Fields(strings.Trim(said, "[]\n"))
	if n := countListed(some); n != len(some) || n < 15 {
		t.Errorf("%d of %d programs and maps are listed of the tracer that says %q", n, len(some), said)
	}
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, "kill -9", some)
}

func gone(t *testing.T, how string, some []string) {
	t.Helper()
	for range 200 {
		if countListed(some) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s leaves %d of %v behind", how, countListed(some), some)
}

func ptr(text string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(text)) }
