//go:build linux && amd64

package ledger_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline/host/calls/bpf"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/code/unwind"
	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// eager copies the stack of every call, as soon as it has seen one of its place.
type eager struct {
	*bpf.Tracer
	paced map[ledger.Site]bool
}

func (e *eager) Budget(int) error                       { return e.Tracer.Budget(1 << 40) }
func (e *eager) Pace(*event.Event, time.Duration) error { return nil }

func (e *eager) Poll() (*event.Batch, error) {
	b, err := e.Tracer.Poll()
	if err != nil {
		return nil, err
	}
	for i := range b.Events {
		site := ledger.SiteOf(&b.Events[i])
		if !e.paced[site] {
			e.paced[site] = true
			if err := e.Tracer.Pace(&b.Events[i], 0); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// A caught is where a call mapped, how much, and its stack.
type caught struct {
	addr, size uint64
	symbolize.Stack
}

// in reports whether a function is in the stack.
func (c *caught) in(function string) bool {
	return slices.ContainsFunc(c.Frames, func(f symbolize.Frame) bool { return f.Function == function })
}

// keeps is a namer that keeps what it has named.
type keeps struct {
	*symbolize.Symbolizer
	all    []caught
	unread error
}

func (k *keeps) Stack(s *event.Sample) symbolize.Stack {
	out := k.Symbolizer.Stack(s)
	k.all = append(k.all, caught{s.Addr, s.Len, out})
	return out
}

// A program is one that maps below stacks of some kind for each line that it
// is sent.
type program struct {
	pid int
	in  io.Writer
	out *bufio.Reader
}

func startProgram(t *testing.T, env []string, name string, args ...string) *program {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	p := &program{c.Process.Pid, in, bufio.NewReader(out)}
	if _, err := p.until("ready"); err != nil {
		t.Fatal(err)
	}
	return p
}

// until reads what the program says before a line.
func (p *program) until(want string) (printed []string, err error) {
	for {
		line, err := p.out.ReadString('\n')
		switch line = strings.TrimSuffix(line, "\n"); {
		case err != nil:
			return printed, fmt.Errorf("the program ended: %w", err)
		case line == want:
			return printed, nil
		}
		printed = append(printed, line)
	}
}

// stacksOf traces a program on the way that users' are traced. The first round of
// the program makes its places known, and how large its stacks are; all stacks
// of the second are returned, and what the program printed of it.
func stacksOf(t *testing.T, p *program) (all []caught, printed []string) {
	t.Helper()
	names := trace(t, p, &printed)
	return names.all, printed
}

func trace(t *testing.T, p *program, printed *[]string) *keeps {
	t.Helper()
	live.Unraced(t, "it is too slow for a stack of every call")
	tracer, err := bpf.Start()
	live.Need(t, "BPF", err)
	defer tracer.Close()
	names := &keeps{Symbolizer: symbolize.New()}
	defer names.Close()
	names.Cut = func(pid int) { tracer.LargeStacks(pid) }
	names.Python = func(pid int, p event.PythonLayout) { tracer.Python(pid, p) }
	names.Unread = func(_ int, why error) { names.unread = why }
	tr, err := ledger.NewTrace(procfs.Process(p.pid), &eager{tracer, map[ledger.Site]bool{}}, names, event.System)
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		if err := tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		before, incomplete := len(names.all), 0
		fmt.Fprintln(p.in, "go")
		done := make(chan error)
		go func() {
			var err error
			*printed, err = p.until("done")
			done <- err
		}()
		for running := true; running; step() {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
				time.Sleep(20 * time.Millisecond) // until all can be read
			case <-time.After(2 * time.Millisecond):
			}
		}
		for _, s := range names.all[before:] {
			if !s.Complete {
				incomplete++
			}
		}
		t.Logf("round %d: %d stacks, %d not complete; %d lost so far", round+1, len(names.all)-before, incomplete, tr.Last.LostSamples)
		if round > 0 {
			names.all = names.all[before:]
		}
	}
	return names
}

// complete counts the stacks that are complete and shows some that are not.
func complete(t *testing.T, all []caught, least int) {
	t.Helper()
	bad := 0
	for _, s := range all {
		if s.Complete {
			if last := s.Frames[len(s.Frames)-1]; last.Function != "_start" && !strings.HasPrefix(filepath.Base(last.Object), "libc") {
				t.Fatalf("no thread begins so: %s", text(s.Stack))
			}
			continue
		}
		if bad++; bad <= 3 {
			t.Logf("not complete: %s", text(s.Stack))
		}
	}
	t.Logf("%d of %d stacks are complete: %.2f%%", len(all)-bad, len(all), 100*float64(len(all)-bad)/float64(max(len(all), 1)))
	if bad*1000 > len(all) || len(all) < least {
		t.Errorf("%d of %d stacks are not complete, want 1 of 1000 at most, of %d or more", bad, len(all), least)
	}
}

// text is a stack in a line, innermost first.
func text(s symbolize.Stack) string {
	var out []string
	for _, f := range s.Frames {
		if f.Line > 0 {
			f.Function += fmt.Sprintf(":%d", f.Line)
		}
		out = append(out, f.Function)
	}
	return strings.Join(out, " ← ")
}

func source(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join("testdata", "stacks")
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(folder, "maps.h"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "#include \"maps.h\"\n", string(head), 1)
}

// TestStacks counts how many stacks are complete, of programs that make it hard.
func TestStacks(t *testing.T) {
	live.Traces(t)
	for _, p := range []struct {
		name, file string
		args       []string
		least      int
	}{
		{"calls", "calls.c", nil, 500},
		{"large stacks", "deep.c", nil, 500},
		{"exceptions", "exceptions.cc", nil, 500},
		{"threads", "threads.c", nil, 500},
		{"signals", "signals.c", nil, 500},
		{"signals on a stack of their own", "signals.c", []string{"own"}, 500},
		{"code made at run time", "madecode.c", nil, 500},
	} {
		t.Run(p.name, func(t *testing.T) {
			exe := live.Build(t, source(t, p.file), nil, "-fomit-frame-pointer", "-pthread", "-lm")
			all, _ := stacksOf(t, startProgram(t, nil, exe, p.args...))
			complete(t, all, p.least)
		})
	}
}

// TestStacksOfLoaded loads libraries one after the other to the same addresses,
// while their files are deleted and replaced.
func TestStacksOfLoaded(t *testing.T) {
	live.Traces(t)
	exe := live.Build(t, source(t, "loads.c"), nil, "-fomit-frame-pointer", "-ldl")
	folder := t.TempDir()
	for _, name := range []string{"first", "second"} {
		library := live.Build(t, source(t, "plugin.c"), nil, "-shared", "-fPIC", "-fno-optimize-sibling-calls", "-DNAME="+name)
		if err := os.Rename(library, filepath.Join(folder, "lib"+name+".so")); err != nil {
			t.Fatal(err)
		}
	}
	all, _ := stacksOf(t, startProgram(t, []string{"LIBRARIES=" + folder}, exe))
	var ours []caught
	for _, c := range all {
		if len(c.Frames) > 1 && c.Frames[1].Function == "map_here" {
			ours = append(ours, c)
		}
	}
	complete(t, ours, 300)
	for _, c := range ours {
		want := []string{"first", "second"}[(c.size/4096-1)%2]
		if text := text(c.Stack); c.Complete && !strings.Contains(text, " ← map_here ← inner ← "+want+" ← ") {
			t.Errorf("want %s in %s", want, text)
		}
	}
}

// TestStacksThatCannotBeComplete has code that nothing describes, without a frame
// pointer. What called it is not made up.
func TestStacksThatCannotBeComplete(t *testing.T) {
	live.Traces(t)
	exe := live.Build(t, source(t, "madecode.c"), nil, "-fomit-frame-pointer")
	all, _ := stacksOf(t, startProgram(t, nil, exe, "without"))
	if len(all) < 300 {
		t.Errorf("%d stacks", len(all))
	}
	for _, c := range all {
		if !strings.HasPrefix(text(c.Stack), "mmap ← map_here ← middle ← anonymous memory+") || c.Complete || len(c.Frames) > 4 {
			t.Fatalf("complete: %v: %s", c.Complete, text(c.Stack))
		}
	}
}

// TestStacksOfUnknownPython has an interpreter that is newer than all that are
// known: that is reported, and no function is made up.
func TestStacksOfUnknownPython(t *testing.T) {
	live.Traces(t)
	exe := live.Build(t, `struct { char cookie[8]; unsigned long words[99]; } _PyRuntime = {"xdebugpy", {0x04ff00f0, 0, 1, 2, 3}};
`+source(t, "calls.c"), nil, "-rdynamic")
	var printed []string
	names := trace(t, startProgram(t, nil, exe), &printed)
	if names.unread == nil || !strings.Contains(names.unread.Error(), "the layout of Python 4.255 is not known") {
		t.Errorf("it is reported that %v", names.unread)
	}
	complete(t, names.all, 500)
}

// pythons are the interpreters at hand: those that the variable names, and the
// machine's.
func pythons(t *testing.T) []string {
	out := filepath.SplitList(os.Getenv("STRANDLINE_PYTHONS"))
	if found, err := exec.LookPath("python3"); err == nil {
		out = append(out, found)
	}
	if len(out) == 0 {
		live.Tool(t, "python3") // none is installed
	}
	return out
}

// TestStacksOfPython compares the functions of Python in each stack with what
// the program itself saw.
func TestStacksOfPython(t *testing.T) {
	live.Traces(t)
	const script = "maps.py"
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			if _, err := os.Stat(python); err != nil {
				live.Missing(t, python, err)
			}
			var printed []string
			names := trace(t, startProgram(t, nil, python, filepath.Join("testdata", "stacks", script)), &printed)
			if names.unread != nil {
				live.Missing(t, "a Python whose layout is known", names.unread)
			}
			all := names.all
			complete(t, all, 500)
			at := map[uint64]*caught{}
			starts := 0
			for i := range all {
				at[all[i].addr] = &all[i]
				if !all[i].in("pthread_create") {
					continue
				}
				if starts++; !all[i].in("waits_in_a_thread") && !all[i].in("run") { // the thread that is made is in the list already
					t.Errorf("no line of Python makes the thread: %s", text(all[i].Stack))
				}
			}
			compared, wrong := 0, 0
			for _, line := range printed {
				addr, want, _ := strings.Cut(line, " ")
				n, _ := strconv.ParseUint(addr, 16, 64)
				c := at[n]
				if c == nil {
					continue // its stack was not copied
				}
				compared++
				var got []string
				for _, f := range c.Frames {
					if f.File != "" || f.Function == unwind.UnreadableFunction {
						got = append(got, fmt.Sprintf("%s:%d", f.Function, f.Line))
					}
				}
				if !sameOrGone(got, strings.Fields(want)) {
					if wrong++; wrong <= 3 {
						t.Errorf("got  %s\nwant %s\nin   %s", strings.Join(got, " "), want, text(c.Stack))
					}
				}
			}
			t.Logf("%d stacks compared with what Python says, %d differ; %d make threads", compared, wrong, starts)
			if compared < 500 {
				t.Error("these are too few")
			}
		})
	}
}

var (
	gdbSize  = regexp.MustCompile(`^size (\d+)$`)
	gdbFrame = regexp.MustCompile(`^#\d+ +(?:0x[0-9a-f]+ in )?(.*?) \(\)`)
)

// alias is one of the names that a function of the C library has, without what
// states which copy or part of it the compiler made.
func alias(name string) string {
	for _, part := range []string{" [clone", "[cold]", ".cold", ".part"} {
		name, _, _ = strings.Cut(name, part)
	}
	return strings.TrimSuffix(strings.TrimLeft(strings.TrimPrefix(name, "__GI_"), "_"), "64")
}

// debuggerStacks are the stacks of a program's mappings as gdb sees them, by size.
func debuggerStacks(t *testing.T, exe string) map[uint64][][]string {
	t.Helper()
	input := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(input, []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-nx", "-batch"}
	for _, setting := range []string{"debug-file-directory /nowhere", "auto-load no", "width 0", "height 0", "backtrace past-main on"} {
		args = append(args, "-iex", "set "+setting)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(`break main
run <`+input+` >/dev/null
catch syscall mmap
commands
silent
printf "size %lu\n", $rsi
bt
continue
end
continue
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("gdb", append(args, "-x", script, exe)...).CombinedOutput()
	if err != nil {
		live.Missing(t, "a gdb that runs programs", fmt.Sprintf("%v: %s", err, out))
	}
	stacks := map[uint64][][]string{}
	size := uint64(0)
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if m := gdbSize.FindStringSubmatch(line); m != nil {
			size, _ = strconv.ParseUint(m[1], 10, 64)
			stacks[size] = append(stacks[size], nil)
		} else if m := gdbFrame.FindStringSubmatch(line); m != nil && size > 0 {
			last := &stacks[size][len(stacks[size])-1]
			*last = append(*last, m[1])
		}
	}
	if len(stacks) == 0 {
		live.Missing(t, "a gdb that stops at system calls", string(out))
	}
	return stacks
}

// TestStacksAgainstDebugger compares every stack with those that gdb sees where
// the same size is mapped, function by function.
func TestStacksAgainstDebugger(t *testing.T) {
	live.Traces(t)
	live.Tool(t, "gdb")
	for _, file := range []string{"calls.c", "exceptions.cc"} {
		t.Run(file, func(t *testing.T) {
			exe := live.Build(t, source(t, file), nil, "-fomit-frame-pointer")
			all, _ := stacksOf(t, startProgram(t, nil, exe))
			theirs := debuggerStacks(t, exe)
			compared, wrong := 0, 0
			for _, c := range all {
				if len(theirs[c.size]) == 0 {
					continue // of the C library, for itself
				}
				compared++
				if !slices.ContainsFunc(theirs[c.size], func(frames []string) bool { return agree(c.Frames, frames) }) {
					if wrong++; wrong <= 3 {
						t.Errorf("got %s\nand gdb %v", text(c.Stack), theirs[c.size])
					}
				}
			}
			t.Logf("%d stacks compared with gdb's, %d differ", compared, wrong)
			if compared < 300 {
				t.Error("these are too few")
			}
		})
	}
}

// sameOrGone compares functions. One without references, the code of eval, can be
// gone, or its lines.
func sameOrGone(got, want []string) bool {
	return slices.EqualFunc(got, want, func(got, want string) bool {
		eval := want == "<module>:1" || want == "<listcomp>:1"
		return got == want || eval && (got == unwind.UnreadableFunction+":0" || got == strings.TrimSuffix(want, "1")+"0")
	})
}

// agree compares functions. What gdb has no name for may be anything.
func agree(ours []symbolize.Frame, theirs []string) bool {
	return slices.EqualFunc(ours, theirs, func(f symbolize.Frame, name string) bool {
		return name == "??" || alias(f.Function) == alias(name)
	})
}
