package ranks

import (
	"bytes"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/logs/failure"
)

// A wording is words by which a message, in small letters, is of a kind.
type wording struct {
	kind Kind
	any  []string
}

// wordings are in the order in which they are tried.
var wordings = []wording{
	{Nothing, []string{"childfailederror", "destroy_process_group() was not called", "systemexit: 0", "stopiteration", "deprecationwarning", "futurewarning", "userwarning", "calledprocesserror"}},
	{Driver, []string{"raytaskerror", "actordiederror", "rayactorerror", "workercrashederror", "actor died", "actorunavailable"}},
	{Stopped, []string{"signalexception", "got signal: 15", "received 15 death signal", "keyboardinterrupt", "sigterm", "received signal 15", "sigterm received", "sigint", "sigusr"}},
	{Device, failure.Faults[failure.HintECC]},
	{Device, failure.Faults[failure.HintIllegal]},
	{Device, []string{"ecc error", "fallen off the bus", "unspecified launch failure", "hardware stack error", "gpu is lost", "device not ready", "cuda error: an illegal", "cuda error: device-side", "cuda error: unknown error", "nvlink error", "cuda error: invalid device", "hardware exception", "cuda error: system not yet", "cuda error: mps", "no cuda-capable", "cuda error: launch", "hsa_status_error", "hip error: ", "xid "}},
	{Waited, failure.Faults[failure.HintTimeout]},
	{Waited, []string{"timed out waiting", "wait timeout after", "timed out after", "application timeout caused", "operation timed out", "exception (either an error or timeout) detected", "failure detected by watchdog", "monitoredbarrier", "heartbeat monitor timed out", "unable to complete", "read timed out from peer", "timed out in"}},
	{Lost, []string{
		"remote process exited", "connection closed by remote peer", "connection closed by peer", "connection reset by peer", "connection refused", "ncclremoteerror", "broken pipe",
		"completion from peer", "disterror", "distbackenderror", "distnetworkerror", "diststoreerror", "gloo", "tcpstore", "socketprogress", "socket closed", "communicator was aborted", "ncclcommabort", "ncclsystemerror",
		"unhandled system error", "remote peer", "peer is gone", "peer closed", "failed to recv", "sendbytes failed", "recvvalue failed", "network error", "nccl error", "ucx", "connection was closed", "endpoint is closed", "rendezvousconnectionerror", "rendezvousclosederror",
		"eoferror", "remotedisconnected", "incompleteread", "store->get", "broadcasting ncclUniqueId", "ncclinvalidusage", "mpi_abort", "not all ranks", "lost connection", "peer rank", "another rank", "other rank", "nccl watchdog", "collective operation",
	}},
	{Disk, []string{"no space left on device", "errno 28", "disk quota exceeded", "errno 122", "enospc", "edquot", "file too large", "read-only file system"}},
	{Host, []string{"cannot allocate memory", "can't allocate memory", "unable to mmap", "memoryerror", "killed by signal: killed", "bus error", "out of shared memory", "std::bad_alloc", "defaultcpuallocator", "arraymemoryerror", "unable to allocate", "insufficient shared memory"}},
}

// KindOf is the kind of a message, by its words: an exception that nothing else is known of was
// raised by the process itself.
func KindOf(message string) Kind {
	low := strings.ToLower(message)
	for _, w := range wordings {
		for _, word := range w.any {
			if strings.Contains(low, word) {
				return w.kind
			}
		}
	}
	return Raised
}

var (
	sequence = lazyregexp.New(`(?:SeqNum=|sequence (?:id|number): |at work: |work sequence id: )(\d+)`)
	enqueued = lazyregexp.New(`(?i)last enqueued (?:NCCL )?work: (\d+)`)
	signaled = lazyregexp.New(`(?i)dump signal|preparing to dump|should dump`)
	process  = lazyregexp.New(`pid=(\d+)(?:, ip=([\w.:-]+))?`)
	exitLike = lazyregexp.New(`^\W{0,4}(?:[\w.]+(?:Error|Exception)\b|terminate called|what\(\):|Fatal Python error|\*\*\* Process received signal|(?:Segmentation fault|Bus error)\b)`)
	harmless = lazyregexp.New(`(?i)can potentially cause a hang|destroy_process_group|TORCH_NCCL_TRACE|NCCL_DEBUG|NCCL INFO|is deprecated|INFO .*timeout|timeout[ _=:]{1,3}\d|TimeoutKeepAlive|timeout\(|ddp_timeout`)
)

// message takes a line with words of an error that is not a traceback's.
func (t *reader) message(v *voice, l lineOf) bool {
	body := l.rest[:min(len(l.rest), 2048)]
	low := bytes.ToLower(body)
	nccl := bytes.Contains(low, []byte("processgroup")) || bytes.Contains(low, []byte("tcpstore"))
	e := Event{Seq: -1, Enqueue: -1}
	if m := sequence.FindSubmatch(body); m != nil {
		e.Seq, _ = strconv.ParseInt(string(m[1]), 10, 64)
	}
	if m := enqueued.FindSubmatch(body); m != nil {
		e.Enqueue, _ = strconv.ParseInt(string(m[1]), 10, 64)
	}
	switch kind := KindOf(string(body)); {
	case signaled.Match(body):
		e.Kind = Signaled
	case kind == Driver:
		e.Kind = Driver
		e.PID, e.IP = processIn(body)
	case harmless.Match(body) && kind != Waited && kind != Lost:
		return false
	case kind == Waited && (nccl || e.Seq >= 0 || exitLike.Match(body) || bytes.Contains(low, []byte("timed out"))), kind == Lost && !bytes.Contains(low, []byte("nccl info")):
		e.Kind = kind
	case kind == Device, kind == Disk, kind == Host:
		e.Kind = kind
		e.Caught = !exitLike.Match(body) && !nccl
	case kind == Stopped:
		e.Kind = kind
	case kind == Raised && crashed.Match(body):
		e.Kind = Raised
	default:
		return false
	}
	t.event(v, l, e)
	return true
}

// crashed are ends without a traceback.
var crashed = lazyregexp.New(`(?i)^\W{0,4}(?:fatal python error|segmentation fault|what\(\):|\*\*\* process received signal)`)

// processIn is the process that Ray names in a message.
func processIn(b []byte) (pid int, ip string) {
	for _, m := range process.FindAllSubmatch(b, 4) {
		pid, _ = strconv.Atoi(string(m[1]))
		ip = string(m[2])
	}
	return pid, ip
}

var (
	worldIn = lazyregexp.New(`(?i)(?:\bnranks |\bworld[_ -]?size\b[ .:="']{1,24}|starting with |\bMEMBER: \d+/|\bnum_processes[ :=]+|\btotal ranks[ :=]+|\bworld of size[ :=]*)(\d{1,12})`)
	tensor  = lazyregexp.New(`(?i)(?:tensor[-_]model[-_]parallel[-_ ]size|tensor[-_]parallel(?:[-_](?:size|degree))?|--?tp(?:[-_]size)?|\btp(?:_size|_degree)?)["']?[ :=]{1,3}(\d{1,5})\b`)
	pipes   = lazyregexp.New(`(?i)(?:pipeline[-_]model[-_]parallel[-_ ]size|pipeline[-_]parallel(?:[-_](?:size|degree))?|--?pp(?:[-_]size)?|\bpp(?:_size|_degree)?)["']?[ :=]{1,3}(\d{1,5})\b`)
	expert  = lazyregexp.New(`(?i)(?:expert[-_](?:model[-_])?parallel(?:[-_ ](?:size|degree))?|--?ep(?:[-_]size)?|\bep(?:_size|_degree)?)["']?[ :=]{1,3}(\d{1,5})\b`)
	mesh    = lazyregexp.New(`(?i)mesh with \[([^\]]{1,200})\], \[([\d, ]{1,80})\]`)
	planned = lazyregexp.New(`(?i)(?:total (?:training |optimization )?steps|max_steps|total_training_steps)["']?[ :=]{1,3}([\d,]{1,12})`)
	device  = lazyregexp.New(`(?i)(?:capacity|total_memory|device memory)[^\d]{1,60}?(\d+(?:\.\d+)?) ?(GiB|GB|MiB)`)
	migIn   = lazyregexp.New(`\bMIG \d+[cg]\.(?:\d+g\.)?(\d+)gb`)
	nodes   = lazyregexp.New(`'nnodes': (\d+)|\bnnodes[ =:]{1,2}(\d+)`)
	perNode = lazyregexp.New(`'n_gpus_per_node': (\d+)|n_gpus_per_node[ =:]{1,2}(\d+)|nproc[_-]per[_-]node[ =:]{1,2}(\d+)`)
)

// layout takes what a line states about how the job is divided.
func (t *reader) layout(l lineOf) {
	line := beginning(l)
	one := func(re *lazyregexp.Regexp) int {
		for _, g := range submatch(re, line)[1:] {
			if len(g) > 0 {
				x, _ := strconv.Atoi(strings.ReplaceAll(string(g), ",", ""))
				return x
			}
		}
		return 0
	}
	t.world(one(worldIn))
	if n, per := one(nodes), one(perNode); n > 0 && per > 0 && n <= maxWorld/per {
		t.world(n * per)
	}
	set := func(to *int, x int) {
		if x > 0 {
			*to = x
		}
	}
	set(&t.out.Layout.Tensor, one(tensor))
	set(&t.out.Layout.Pipeline, one(pipes))
	set(&t.out.Layout.Expert, one(expert))
	if m := mesh.FindSubmatch(line); m != nil {
		t.mesh(string(m[1]), string(m[2]))
	}
	if x := one(planned); x > 0 {
		t.out.Planned = int64(x)
	}
}

// maxWorld is the largest number of ranks that a job can have.
const maxWorld = 1 << 17

// world takes a number of ranks that a line states.
func (t *reader) world(n int) {
	if n > 0 && n <= maxWorld {
		t.out.World[n]++
	}
}

// beginning is the part of a line in which figures of the job and its devices are.
func beginning(l lineOf) []byte { return l.rest[:min(len(l.rest), 1500)] }

// capacity takes what a line states about the device of a process.
func (t *reader) capacity(v *voice, l lineOf) {
	line := beginning(l)
	if m := device.FindSubmatch(line); m != nil {
		x, _ := strconv.ParseFloat(string(m[1]), 64)
		if unit := string(m[2]); unit[0] == 'M' {
			x /= 1 << 10
		}
		v.GPU = int64(x * (1 << 30))
	}
	if m := migIn.FindSubmatch(line); m != nil {
		v.Slice = true
		if x, err := strconv.ParseFloat(string(m[1]), 64); err == nil && len(t.out.Slices) < 64 {
			t.out.Slices = append(t.out.Slices, x)
		}
	}
}

func submatch(re *lazyregexp.Regexp, line []byte) [][]byte {
	if m := re.FindSubmatch(line); m != nil {
		return m
	}
	return [][]byte{nil}
}

// mesh takes the names and the sizes of the dimensions of a mesh.
func (t *reader) mesh(names, sizes string) {
	of := strings.Split(sizes, ",")
	world := 1
	for i, name := range strings.Split(names, ",") {
		if i >= len(of) {
			return
		}
		n, _ := strconv.Atoi(strings.TrimSpace(of[i]))
		if n <= 0 || n > maxWorld/world {
			return
		}
		world *= n
		switch strings.Trim(name, " '\"") {
		case "tp":
			t.out.Layout.Tensor = n
		case "pp":
			t.out.Layout.Pipeline = n
		case "cp":
			t.out.Layout.Context = n
		case "ep":
			t.out.Layout.Expert = n
		}
	}
	t.world(world)
}
