//go:build linux && amd64

package ledger

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"strandline/host/calls/bpf"
	"strandline/host/calls/event"
	"strandline/host/code/symbolize"
	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// TestMain lets the test binary be the process that is traced.
func TestMain(m *testing.M) {
	switch role := os.Getenv("STRANDLINE_TEST_ROLE"); role {
	case "":
		goleak.VerifyTestMain(m)
	case "random":
		mapAtRandom()
	case "storm":
		storm()
	}
}

func mmap(addr, size uintptr, prot, flags int) uintptr {
	p, _, errno := unix.Syscall6(unix.SYS_MMAP, addr, size, uintptr(prot), uintptr(flags|unix.MAP_PRIVATE|unix.MAP_ANONYMOUS), ^uintptr(0), 0)
	if errno != 0 {
		panic(errno)
	}
	return p
}

// mapAtRandom changes mappings in four threads, each in a separate range and
// where the kernel puts them, until its input ends; then it holds still.
func mapAtRandom() {
	stop, done := make(chan bool), make(chan bool)
	for seed := range uint64(4) {
		go func() {
			runtime.LockOSThread()
			random := rand.New(rand.NewPCG(seed, 1))
			const pages = 256
			base := mmap(0, pages*testPage, unix.PROT_NONE, 0)
			var own []uintptr
			for {
				select {
				case <-stop:
					done <- true
					return
				default:
				}
				at := base + uintptr(random.IntN(pages-16))*testPage
				size := uintptr(1+random.IntN(16)) * testPage
				switch random.IntN(12) {
				case 0:
					mmap(at, size, random.IntN(4), unix.MAP_FIXED)
				case 1: // out of the middle; a hole in the fixed range another thread could be given
					if len(own) > 0 {
						unix.Syscall(unix.SYS_MUNMAP, own[0]+size/2&^(testPage-1), 3*testPage, 0)
						own = own[1:]
					}
				case 2:
					unix.Syscall(unix.SYS_MPROTECT, at, size, uintptr(random.IntN(4)))
				case 3, 4, 8, 9:
					own = append(own, mmap(0, 16*testPage, 3, 0))
				case 5:
					if len(own) > 0 {
						unix.Syscall(unix.SYS_MUNMAP, own[0], 16*testPage, 0)
						own = own[1:]
					}
				case 6, 10, 11: // what it leaves another thread can be given before it returns
					if len(own) > 0 {
						p, _, errno := unix.Syscall6(unix.SYS_MREMAP, own[0], 16*testPage, uintptr(8+random.IntN(16))*testPage, unix.MREMAP_MAYMOVE, 0, 0)
						if errno == 0 {
							unix.Syscall(unix.SYS_MUNMAP, p, 4*testPage, 0)
						}
						own = own[1:]
					}
				case 7:
					unix.Syscall(unix.SYS_MADVISE, at, size, unix.MADV_DONTNEED)
					time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
				}
			}
		}()
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	for range 4 {
		stop <- true
	}
	for range 4 {
		<-done
	}
	fmt.Println("still")
	bufio.NewReader(os.Stdin).ReadString('\n')
}

// storm waits for a line, then maps and unmaps in part as fast as it can, so that every call is an
// event, and keeps a mapping now and then.
func storm() {
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	runtime.LockOSThread()
	kept := 0
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		for range 500 {
			p := mmap(0, 3*testPage, 3, 0)
			unix.Syscall(unix.SYS_MUNMAP, p, testPage, 0)
			unix.Syscall(unix.SYS_MUNMAP, p+testPage, 2*testPage, 0)
		}
		mmap(0, stormKeeps, 3, 0)
		kept++
	}
	fmt.Println(kept)
	in.ReadString('\n')
}

const stormKeeps = 41 * testPage

// traced starts a role and traces it.
func traced(t *testing.T, role string) (*Trace, *exec.Cmd, *bufio.Reader, func()) {
	t.Helper()
	source, err := bpf.Start()
	live.Need(t, "BPF", err)
	t.Cleanup(source.Close)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "STRANDLINE_TEST_ROLE="+role)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	printed := bufio.NewReader(out)
	if line, _ := printed.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it says %q", line)
	}
	names := symbolize.New()
	t.Cleanup(names.Close)
	tr, err := NewTrace(procfs.Process(cmd.Process.Pid), source, names, event.System)
	if err != nil {
		t.Fatal(err)
	}
	return tr, cmd, printed, func() { fmt.Fprintln(in) }
}

// TestLedgerOfRealProcess traces threads that map at random. Once they hold
// still the ledger agrees with the kernel to the page, and had nothing to correct.
func TestLedgerOfRealProcess(t *testing.T) {
	live.Traces(t)
	tr, cmd, printed, next := traced(t, "random")
	const enough, patience = 1000, 2 * time.Minute
	for began := time.Now(); time.Since(began) < 2*time.Second || callsIn(tr.Ledger) < enough && time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
		if err := tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
	next()
	if line, _ := printed.ReadString('\n'); line != "still\n" {
		t.Fatalf("it says %q", line)
	}
	missing, extra := agreement(t, tr, cmd.Process.Pid, tr.Step)
	for _, m := range missing {
		t.Errorf("mapped and not in the ledger: %x-%x", m.start, m.end)
	}
	for _, iv := range extra {
		t.Errorf("in the ledger and not mapped: %+v", iv)
	}
	calls := callsIn(tr.Ledger)
	if calls < enough || tr.Last.Lost > 0 {
		t.Errorf("%d calls, %d events lost", calls, tr.Last.Lost)
	}
	t.Logf("%d calls, %d pairs", calls, tr.Last.Paired)
}

func callsIn(l *Ledger) (calls int64) {
	for _, c := range l.Causes {
		calls += c.calls
	}
	return calls
}

// agreement compares a ledger with the kernel's list after steps until they agree: the
// program's runtime can map something at any moment. It returns by what they differ.
func agreement(t *testing.T, tr *Trace, pid int, step func() error) (missing []addresses, extra []Interval) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		time.Sleep(20 * time.Millisecond)
		if err := step(); err != nil {
			t.Fatal(err)
		}
		maps, err := procfs.Process(pid).Maps()
		if err != nil {
			t.Fatal(err)
		}
		missing, extra = tr.Ledger.Space(uint32(pid)).compare(maps)
		if len(missing)+len(extra) == 0 || time.Now().After(deadline) {
			return missing, extra
		}
	}
}

// TestStorm traces a process whose every call is an event, at a rate at which
// none may be taken for granted. Whatever is lost, the sums are right.
func TestStorm(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "it takes the memory that is measured here")
	tr, cmd, printed, begin := traced(t, "storm")
	events := int64(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, used := time.Now(), processorTime(t)
	begin()
	kept := make(chan string, 1)
	go func() {
		line, _ := printed.ReadString('\n')
		kept <- strings.TrimSpace(line)
	}()
	var line string
	for line == "" {
		if err := tr.Step(); err != nil {
			t.Fatal(err)
		}
		select {
		case line = <-kept:
		case <-time.After(50 * time.Millisecond):
		}
	}
	took := time.Since(began)
	used = processorTime(t) - used
	if err := tr.Settle(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	var want, live int64
	fmt.Sscan(line, &want)
	want *= stormKeeps
	for i, c := range tr.Ledger.Causes {
		events += c.calls
		if c.maxSize == stormKeeps && CauseID(i) > Unseen {
			live += c.Live
		}
	}
	unseen := tr.Ledger.Causes[Unseen].Live
	if tr.Last.Lost == 0 && live != want || live > want || live+unseen < want {
		t.Errorf("%d bytes of calls that were seen and %d of others are live, want %d; %d events lost", live, unseen, want, tr.Last.Lost)
	}
	if grew := int64(after.Sys) - int64(before.Sys); grew > 256<<20 {
		t.Errorf("the trace took %d bytes", grew)
	}
	if missing, extra := agreement(t, tr, cmd.Process.Pid, tr.Settle); len(missing)+len(extra) > 0 {
		t.Errorf("%d ranges are missing, %d are too many", len(missing), len(extra))
	}
	t.Logf("%.0f calls a second, %d lost, %.1f%% of a processor and %d MiB taken",
		float64(3*events)/took.Seconds(), tr.Last.Lost, 100*used.Seconds()/took.Seconds(), (after.Sys-before.Sys)>>20)
}

// processorTime returns what this process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
