package ranks

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/logs/failure"
	"strandline/logs/text"
)

var (
	srunExit  = lazyregexp.New(`^(?:srun|jsrun|flux-shell\S*|slurmstepd): (?:error: )?([\w.-]+): tasks? ([\d,-]+): (.*)`)
	aborting  = lazyregexp.New(`Terminating StepId|Job step aborted|sending SIGTERM|Sending process \d+ closing signal|Killing subprocess|aborting job|Stopping worker group`)
	elastic   = lazyregexp.New(`failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)`)
	mpiExit   = lazyregexp.New(`process rank (\d+) with PID (\d+) on node (\S+) exited on signal (\d+)|Process name: \[\[\d+,\d+\],\s*(\d+)\]|MPI_ABORT was invoked on rank (\d+)`)
	exitsWith = lazyregexp.New(`exits with return code = (-?\d+)`)
	fluxExit  = lazyregexp.New(`(?:task\(s\)|tasks?) ([\d,-]+)[: ]+.*(?:exited with exit code|exit code|signal) (\d+)`)
	endsJob   = lazyregexp.New(`(?i)due to (preemption|time limit)|\bpreempt(?:ed|ing|ion)\b|TERM_(?:PREEMPT|RUNLIMIT|OWNER)|\bevicted\b.*|received 15 death signal|CANCELLED AT|spot (?:instance )?interruption|received SIGTERM|SIGTERM received|got SIGTERM|node .*draining|requeu`)
	goesOn    = lazyregexp.New(`(?i)preemption (?:by|mode|of request)|sequence group|no_preempt|swap|recompute|--requeue|requeue=`)
	restarts  = lazyregexp.New(`(?i)will restart worker group|attempts? left|restart_count=[1-9]|\brestarting\b.*(?:attempt|worker|job|group|training)|\battempt [2-9]\b|attempt_[1-9]|restart (?:count|attempt)[ :=]*[1-9]`)
	xid       = lazyregexp.New(`NVRM: Xid \(PCI:([\w:.]+)\): (\d+)`)
	sysHost   = lazyregexp.New(`^(?:[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) ([\w.-]+) kernel:`)
	podOf     = lazyregexp.New(`\bpods?/([\w.-]+)`)
	child     = lazyregexp.New(`Killing subprocess (\d+)|process (\d+) spawned with command`)
	ncclHost  = lazyregexp.New(`^([\w.-]+):(\d+):\d+ \[\d+\] `)
	rayOOM    = lazyregexp.New(`(?:IP: ([\d.]+))?.*\bpid=(\d+), memory used`)
)

// launcher takes what a launcher, a scheduler or the kernel states about processes.
func (t *reader) launcher(v *voice, l lineOf) bool {
	line := l.rest
	if l.has&(ofExit|ofKernel) == 0 { // words of memory alone
		return t.kill(v, l)
	}
	if l.has&ofAborting != 0 && aborting.Match(line) {
		t.ending = true
		t.out.Aborted = true
	}
	if m := l.match(ofChild, child); m != nil && len(t.out.Children) < 1<<10 {
		t.out.Children = append(t.out.Children, atoi(m[1])+atoi(m[2]))
		return true
	}
	if m := l.match(ofTask, srunExit); m != nil {
		t.exit(l, Exit{Ranks: list(string(m[2])), Task: true, Local: -1, Host: string(m[1]), State: string(m[3]), Code: codeIn(string(m[3])), Kind: stateKind(string(m[3]))})
		return true
	}
	if m := l.match(ofCode, elastic); m != nil {
		e := Exit{Local: atoi(m[2]), PID: atoi(m[3]), Code: atoi(m[1]), Root: true}
		t.exit(l, e)
		return true
	}
	if m := l.match(ofAborting, mpiExit); m != nil {
		e := Exit{Local: -1, PID: atoi(m[2]), Host: string(m[3]), Root: true}
		for _, g := range [][]byte{m[1], m[5], m[6]} {
			if len(g) > 0 {
				e.Ranks = []int{atoi(g)}
			}
		}
		if len(m[4]) > 0 {
			e.Code = -atoi(m[4])
		}
		t.exit(l, e)
		return true
	}
	if m := l.match(ofCode, exitsWith); m != nil {
		t.exit(l, Exit{Local: -1, Code: atoi(m[1]), State: "deepspeed"})
		return true
	}
	if m := l.match(ofTask, fluxExit); m != nil {
		t.exit(l, Exit{Ranks: list(string(m[1])), Task: true, Local: -1, Code: atoi(m[2]), State: quoted(line)})
		return true
	}
	if m := l.match(ofXid, xid); m != nil {
		t.event(v, l, Event{Kind: Device, Seq: -1, Enqueue: -1})
		if h := sysHost.FindSubmatch(l.whole); h != nil {
			v.Host = string(h[1])
		}
		return true
	}
	if l.has&ofEnding != 0 && endsJob.Match(line) && !goesOn.Match(line) {
		t.out.Ended = moments(t.out.Ended, t.moment(l))
		t.ending = true
		return true
	}
	if l.has&ofFailure != 0 {
		return t.kill(v, l)
	}
	return false
}

// match matches an expression for which a line must have a word of some.
func (l *lineOf) match(words flag, re *lazyregexp.Regexp) [][]byte {
	if l.has&words == 0 {
		return nil
	}
	return re.FindSubmatch(l.rest)
}

// kill takes a statement that a process was ended for the host's memory.
func (t *reader) kill(v *voice, l lineOf) bool {
	const maxKills = 512
	if len(t.out.Kills) == maxKills || l.number == t.looked { // once a line, of which this may be a later piece
		return false
	}
	t.looked = l.number
	const maxTries, maxShapes = 64, 1 << 12
	like := shape(l.rest)
	if t.noKills[like] == maxTries { // lines that differ in their digits state the same
		return false
	}
	f := t.statement(l)
	if f == nil || !f.Host {
		if len(t.noKills) < maxShapes {
			t.noKills[like]++
		}
		return false
	}
	k := Kill{At: t.at, Line: l.number, Attempt: t.attempt, Rank: v.Rank, Quote: quoted(l.rest), Source: f.Source}
	if x, ok := f.Figures["pid"]; ok {
		k.PID = int(x)
	}
	if m := sysHost.FindSubmatch(l.whole); m != nil {
		k.Host = string(m[1])
	} else if m := podOf.FindSubmatch(l.rest); m != nil {
		k.Host = string(m[1])
	}
	if m := rayOOM.FindSubmatch(l.rest); m != nil {
		k.PID = atoi(m[2])
		k.Host = string(m[1])
	}
	if k.Host == "" {
		k.Host = cmp.Or(v.Speaker.IP, v.Speaker.Host, t.described)
	}
	if f.Source == failure.SourceProcess && f.Weak {
		return false
	}
	t.out.Kills = append(t.out.Kills, k)
	return true
}

func (t *reader) exit(l lineOf, e Exit) {
	e.Line, e.At, e.Attempt, e.After = l.number, l.at, t.attempt, t.ending
	if math.IsNaN(e.At) {
		e.At = t.at
	}
	if len(t.out.Exits) < 4096 {
		t.out.Exits = append(t.out.Exits, e)
	}
}

// stateKind is the kind of Slurm's words for the end of a task.
func stateKind(state string) Kind {
	switch {
	case strings.Contains(state, "Out Of Memory"):
		return Host
	case strings.HasPrefix(state, "Terminated"), strings.Contains(state, "code 143"):
		return Stopped
	}
	return Nothing
}

// codeIn is the code in Slurm's words.
func codeIn(state string) int {
	switch {
	case strings.Contains(state, "exit code "):
		_, after, _ := strings.Cut(state, "exit code ")
		x := atoi(text.Digits([]byte(after)))
		if x > 128 {
			return 128 - x
		}
		return x
	case strings.HasPrefix(state, "Killed"), strings.Contains(state, "Out Of Memory"):
		return -9
	case strings.HasPrefix(state, "Terminated"):
		return -15
	case strings.HasPrefix(state, "Aborted"):
		return -6
	case strings.HasPrefix(state, "Segmentation"):
		return -11
	case strings.HasPrefix(state, "Bus error"):
		return -7
	}
	return 1
}

func atoi(b []byte) int {
	x, _ := strconv.Atoi(string(b))
	return x
}

// list reads "0-2,5".
func list(s string) (out []int) {
	for part := range strings.SplitSeq(s, ",") {
		a, b, ok := strings.Cut(part, "-")
		x, err := strconv.Atoi(a)
		if err != nil {
			continue
		}
		y := x
		if ok {
			if y, err = strconv.Atoi(b); err != nil {
				continue
			}
		}
		for ; x <= y && len(out) < 1<<14; x++ {
			out = append(out, x)
		}
	}
	return out
}

// restart takes the beginning of another attempt.
func (t *reader) restart(v *voice, l lineOf) {
	if !restarts.Match(l.rest) || v.Rank >= 0 && !bytes.Contains(l.rest, []byte("restart_count=")) {
		return
	}
	if n := len(t.out.Restarts); n > 0 && l.number-t.out.Restarts[n-1].Line < 40 {
		return
	}
	t.out.Restarts = append(t.out.Restarts, t.moment(l))
	t.attempt++
	t.step, t.ending = -1, false
	t.out.Children, t.out.Aborted = nil, false
}

// A table is what elastic prints of the processes that failed.
type table struct {
	open   bool
	root   bool
	begun  bool
	entry  Exit
	at     lineOf
	quoted bool // the lines of an error are read
}

var (
	field   = lazyregexp.New(`^\s*(time|host|rank|exitcode|error_file|traceback)\s*: (.*)`)
	inRank  = lazyregexp.New(`^(\d+) \(local_rank: (\d+)\)`)
	inCode  = lazyregexp.New(`^(-?\d+) \(pid: (\d+)\)`)
	element = lazyregexp.New(`^\s*\[\d+\]:\s*$`)
)

// line takes a line of the table; false if it is none.
func (b *table) line(t *reader, v *voice, l lineOf) bool {
	line := bytes.TrimRight(l.rest, " \t")
	trimmed := bytes.TrimLeft(line, " ")
	switch {
	case text.HasPrefix(trimmed, "Root Cause (first observed failure)"):
		b.end(t)
		b.open, b.root = true, true
		return true
	case string(trimmed) == "Failures:":
		b.open, b.root = true, false
		return true
	case !b.open:
		return false
	case element.Match(line), text.HasPrefix(trimmed, "=====") || text.HasPrefix(trimmed, "-----"):
		b.end(t)
		b.begun = element.Match(line)
		b.open = b.begun || !(b.root && text.HasPrefix(trimmed, "===="))
		b.entry, b.at, b.quoted = Exit{Local: -1, Root: b.root, At: math.NaN()}, l, false
		return true
	}
	if m := field.FindSubmatch(line); m != nil {
		value := m[2]
		switch string(m[1]) {
		case "time":
			if l.timed {
				b.entry.At = l.at
			}
		case "host":
			b.entry.Host = string(value)
		case "rank":
			if m := inRank.FindSubmatch(value); m != nil {
				b.entry.Ranks, b.entry.Local = []int{atoi(m[1])}, atoi(m[2])
			}
		case "exitcode":
			if m := inCode.FindSubmatch(value); m != nil {
				b.entry.Code, b.entry.PID = atoi(m[1]), atoi(m[2])
			}
		case "traceback":
			b.quoted = text.HasPrefix(value, "Traceback")
			if !b.quoted {
				b.entry.State = string(value)
			}
		}
		return true
	}
	if b.quoted {
		body := string(trimmed)
		if exceptional(body) && closes.MatchString(body) || l.has&ofOOM != 0 {
			b.entry.Message = quoted(trimmed)
			b.entry.Kind = KindOf(body)
			if o := t.oomIn(l); o != nil {
				b.entry.Kind, b.entry.OOM = RanOut, o
			}
		}
		return true
	}
	return text.HasPrefix(trimmed, "<NO_OTHER_FAILURES>")
}

// end keeps the entry that was read.
func (b *table) end(t *reader) {
	if b.begun && len(b.entry.Ranks) > 0 {
		at := b.entry.At
		t.exit(b.at, b.entry)
		if !math.IsNaN(at) {
			t.out.Exits[len(t.out.Exits)-1].At = at
		}
	}
	b.begun = false
}
