package failure

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/logs/text"
)

// The kinds of the kernel.
const (
	KernelKill  Kind = "kernel-kill"  // the host had no memory left
	CgroupKill  Kind = "cgroup-kill"  // a cgroup exceeded its limit
	ServiceKill Kind = "service-kill" // systemd states it
	// PressureKill is by a daemon before the memory was full: systemd-oomd, Facebook's oomd,
	// that of Talos.
	PressureKill Kind = "pressure-kill"
)

// familyKernel is the kernel's: mm/oom_kill.c, mm/memcontrol.c.
var familyKernel = &family{
	source: SourceKernel,
	host:   true,
	keys: []string{
		"invokedoom-killer", "oom-kill:", "outofmemory:kill", "killedprocess", "oom_reaper:", "cgroupoutofmemory", "killedbytheoomkiller", "'oom-kill'",
		"asaresultoflimitof", "systemd-oomd", "oomdkill:", "basekillplugin.cpp", "duetomemorypressurefor", "duetomemoryused(", "duetoswapused(", "runtime.oomcontroller",
	},
	begin: []string{"invokedoom-killer"},
	end:   []string{"killedprocess"},
	lines: 20_000,
	bytes: 4 << 20,
	wordings: []wording{
		{kind: CgroupKill, text: "Memory cgroup out of memory: Kill{:any}process {pid:int} ({victim:any}){:any}anon-rss:{anon:kb}, file-rss:{file:kb}, shmem-rss:{shmem:kb}", source: SourceCgroup},
		{kind: CgroupKill, text: "Memory cgroup out of memory: Kill{:any}process {pid:int} ({victim:any}){:any}anon-rss:{anon:kb}, file-rss:{file:kb}", source: SourceCgroup},
		{kind: CgroupKill, text: "Memory cgroup out of memory: Kill{:any}process {pid:int} ({victim:any}){:any}anon-rss:{anon:kb}", source: SourceCgroup},
		{kind: CgroupKill, text: "Memory cgroup out of memory: Kill{:any}process {pid:int} ({victim:any})", source: SourceCgroup},
		{kind: CgroupKill, text: "Memory cgroup out of memory: killed {:int} task", source: SourceCgroup}, // of Flux
		{kind: KernelKill, text: "Killed process {pid:int} ({victim:any}){:any}anon-rss:{anon:kb}, file-rss:{file:kb}, shmem-rss:{shmem:kb}"},
		{kind: KernelKill, text: "Killed process {pid:int} ({victim:any}){:any}anon-rss:{anon:kb}, file-rss:{file:kb}"},
		{kind: KernelKill, text: "Killed process {pid:int}{:any}({victim:any}){:any}anon-rss:{anon:kb}, file-rss:{file:kb}"},
		{kind: KernelKill, text: "Killed process {pid:int}{:any}({victim:any}){:any}anon-rss:{anon:kb}"},
		{kind: KernelKill, text: "Out of memory: Kill{:any}process {pid:int} ({victim:any})"},
		{kind: KernelKill, text: "Killed process {pid:int} ({victim:any})"},
		{kind: CgroupKill, text: "oom-kill:constraint=CONSTRAINT_MEMCG,", source: SourceCgroup},
		{kind: KernelKill, text: "oom-kill:constraint={constraint:word},"},
		{kind: KernelKill, text: "oom_reaper: reaped process {pid:int} ({victim:any})"},
		{kind: KernelKill, text: "{invoker:word} invoked oom-killer", weak: true},
		{kind: PressureKill, text: "due to memory pressure for {slice:any} being {pressure:num}% > {threshold:num}% for > {:num}"},
		{kind: PressureKill, text: "due to memory used ({used:size}) / total ({capacity_bytes:size}) and swap used ({swap:size}) / total ({swap_total:size}) being more than {threshold:num}%"},
		{kind: PressureKill, text: "due to swap used ({swap:size}) / total ({swap_total:size}) being more than {threshold:num}%"},
		{kind: PressureKill, line: `\boomd kill: [\d.]+ [\d.]+ [\d.]+ `},
		{kind: PressureKill, line: `BaseKillPlugin\.cpp:\d+\] Killed [1-9]\d*: `},
		{kind: PressureKill, line: `Sending SIGKILL to cgroup .*runtime\.OOMController`},
		{kind: ServiceKill, text: "has been killed by the OOM killer"},
		{kind: ServiceKill, text: "Failed with result 'oom-kill'"},
		{kind: ServiceKill, text: "systemd-oomd killed"},
	},
	facts: []string{
		"{rss_bytes:size} memory peak",
		"total state size = {entry:size}",
		"constraint=CONSTRAINT_{constraint:word},",
		"memory: usage {usage:kb}, limit {limit_bytes:kb}",
		"oom_memcg={cgroup:word},",
		"asaresultoflimitof{cgroup:word}",
		"total-vm:{virtual:kb}",
		",task={victim:word},pid={pid:int}",
		"Killed {cgroup:word} due to ", `runtime.OOMController", "cgroup": "{cgroup:word}"`, `] Picked "{cgroup:word}" ({held:size}) based on size`,
	},
	read: readKill,
}

// readKill adds the resident size of the process that was killed, whose limit it
// was, and who else held memory.
func readKill(e *excerpt, f *Failure) bool {
	if anon, ok := f.Figures["anon"]; ok {
		f.Figures[RSS] = anon + f.Figures["file"] + f.Figures["shmem"]
	}
	if strings.EqualFold(f.Words["constraint"], "MEMCG") || bytes.Contains(e.raw, []byte("CONSTRAINT_MEMCG")) && f.Kind == KernelKill {
		f.Kind, f.Source = CgroupKill, SourceCgroup
	}
	if f.Kind == KernelKill && cgroupCall.Match(e.raw) {
		f.Kind, f.Source = CgroupKill, SourceCgroup
	}
	if f.Figures[Limit] == 0 {
		delete(f.Figures, Limit)
	} else if f.Kind == KernelKill { // the kernel prints the limit of a cgroup alone
		f.Kind, f.Source = CgroupKill, SourceCgroup
	}
	f.Words["others"] = tasks(e.raw)
	return f.Kind != PressureKill || f.byOomd(e.stated[0])
}

// cgroupCall is a line of the kernel's stack by which a cgroup's limit is the reason.
var cgroupCall = lazyregexp.New(`\bmem_cgroup_(?:out_of_memory|oom_synchronize)\+0x`)

// oomdKill is how Facebook's oomd states a kill: the pressure over 10 s, 60 s and 300 s,
// the cgroup, the bytes that it had, and by which of its rules. A killer that is "(dry)"
// only states what it would have killed.
var oomdKill = lazyregexp.New(`\boomd kill: ([\d.]+) [\d.]+ [\d.]+ (.{1,300}?) +(\d{1,18}) (.*)`)

// byOomd adds what a line of oomd states, if it is one; false if nothing was killed.
func (f *Failure) byOomd(line string) bool {
	m := oomdKill.FindStringSubmatch(line)
	if m == nil {
		return true
	}
	f.set("pressure", "num", m[1])
	f.set("cgroup", "word", m[2])
	f.set("held", "int", m[3])
	return !strings.Contains(m[4], "killer:(dry)")
}

// taskHead is the head of the kernel's table of processes.
var taskHead = lazyregexp.New(`\[ *pid *\] +uid +tgid +total_vm +rss`)

// tasks are the names of the processes that held most by the kernel's table, with
// how many they are and what they held, in KiB of pages of 4 KiB; "" without one.
func tasks(raw []byte) string {
	type held struct {
		name  string
		count int
		pages int64
	}
	sums := map[string]*held{}
	at := taskHead.FindIndex(raw)
	if at == nil {
		return ""
	}
	for line := range bytes.Lines(raw[at[1]:]) {
		pid := bytes.IndexByte(line, ']')
		if from := bytes.LastIndexByte(line, '['); from > 0 { // behind the time
			pid = bytes.LastIndexByte(line, ']')
		}
		fields := strings.Fields(string(line[max(0, pid+1):]))
		const minFields, maxRows = 8, 1 << 12
		if pid < 0 || len(fields) < minFields {
			continue
		}
		pages, err := strconv.ParseInt(fields[3], 10, 64)
		name := fields[len(fields)-1]
		if h := sums[name]; err != nil || h == nil && len(sums) == maxRows {
			continue
		} else if h == nil {
			sums[name] = &held{name, 1, pages}
		} else {
			h.count, h.pages = h.count+1, h.pages+pages
		}
	}
	var list []*held
	for _, h := range sums {
		list = append(list, h)
	}
	sorts.By(list, func(a, b *held) int { return cmp.Or(cmp.Compare(b.pages, a.pages), strings.Compare(a.name, b.name)) })
	var out []string
	for _, h := range list[:min(len(list), 4)] {
		out = append(out, h.name+" "+strconv.Itoa(h.count)+" "+strconv.FormatInt(h.pages*4, 10))
	}
	return strings.Join(out, "\n")
}

// The kinds of Kubernetes.
const (
	PodKilled  Kind = "pod-killed"
	PodEvicted Kind = "pod-evicted"
)

// familyKubernetes is what kubectl describe and docker inspect print.
var familyKubernetes = &family{
	source:   SourceKubernetes,
	host:     true,
	keys:     []string{"oomkilled", "oomkilling", "lowonresource:memory", "condition:[memorypressure", "systemoomencountered"},
	nearby:   []string{"limits:"},
	lines:    16,
	harmless: lazyregexp.New(`(?i)"?OOMKilled"?: ?false|\bif ?an? ?(?:container|pod)[^.;\n]{0,120}OOMKill`),
	wordings: []wording{
		{kind: PodKilled, text: "OOMKill"},
		{kind: KernelKill, text: "System OOM encountered, victim process: {victim:word}, pid: {pid:int}"},
		{kind: PodEvicted, text: "low on resource: memory"},
		{kind: PodEvicted, text: "The node had condition: [MemoryPressure]"},
	},
	facts: []string{
		"low on resource: memory. Threshold quantity: {threshold_bytes:size}, available: {available_bytes:size}", "Container {victim:word} was using {rss_bytes:size}",
		"memory: {limit_bytes:size}Requests", "Limits:{:any}memory: {limit_bytes:size}",
	},
}

// SlurmKilled is a job that Slurm ended.
const SlurmKilled Kind = "slurm"

// familySlurm is Slurm's, whose limit is always of the host's memory:
// src/plugins/task/cgroup, src/interfaces/jobacct_gather.c.
var familySlurm = &family{
	source: SourceSlurm,
	host:   true,
	keys:   []string{"oom-killevent", "oom_killevent", "exceededmemorylimit", "exceededjobmemorylimit", "out_of_me", "oomkilled", "task", "term_memlimit", "pbs:jobkilled"},
	lines:  2,
	wordings: []wording{
		{kind: SlurmKilled, text: "Detected {events:int} oom"},
		{kind: SlurmKilled, text: "oom-kill event(s) in"},
		{kind: SlurmKilled, text: "exceeded memory limit ({usage:size} > {limit_bytes:size}), being killed"},
		{kind: SlurmKilled, text: "exceeded job memory limit"},
		{kind: SlurmKilled, line: `(?:srun|slurmstepd): error: .*Out Of Memory`},
		{kind: SlurmKilled, line: `\bOUT_OF_ME(?:MORY|\+)`},
		{kind: SlurmKilled, text: "TERM_MEMLIMIT: job killed"},
		{kind: SlurmKilled, text: "PBS: job killed: {:any}mem {usage:kb} exceeded limit {limit_bytes:kb}"},
		{kind: SlurmKilled, line: `PBS: job killed: v?mem `},
	},
	read: func(e *excerpt, f *Failure) bool {
		if m := slurmTask.FindSubmatch(e.raw); m != nil {
			f.Words["node"], f.Words["task"] = string(m[1]), string(m[2])
		}
		return true
	},
}

// slurmTask is the node and the tasks of a job that ended.
var slurmTask = lazyregexp.New(`srun: error: ([\w.-]+): tasks? ([\d,-]+): Out Of Memory`)

// RayKilled is a worker that Ray ended.
const RayKilled Kind = "ray"

// familyRay is Ray's.
var familyRay = &family{
	source: SourceRay,
	host:   true,
	keys:   []string{"memoryonthenode", "noderunninglowonmemory", "node_out_of_memory", "memoryusagethreshold", "killedduetomemorypressure", "ofthememoryonnode", "nodememoryusageabovethreshold"},
	lines:  16,
	wordings: []wording{
		{kind: RayKilled, text: "was running was {used:size} / {capacity_bytes:size} ({:num}), which exceeds the memory usage threshold of {fraction:num}"},
		{kind: RayKilled, text: "node running low on memory{:any}{used:size} / {capacity_bytes:size}{:any}memory usage threshold"},
		{kind: RayKilled, text: "node{:any}{used:size} / {capacity_bytes:size}{:any}memory usage threshold"},
		{kind: RayKilled, text: "% of the memory on node {:any} is used ({used:gib} / {capacity_bytes:gib})"},
		{kind: RayKilled, text: "Node memory usage above threshold, used: {used:int}, total: {capacity_bytes:int}, usage fraction: {:num}, threshold: {fraction:num}"},
		{kind: RayKilled, text: "exceeds the memory usage threshold"},
		{kind: RayKilled, text: "the node running low on memory"},
		{kind: RayKilled, text: "NODE_OUT_OF_MEMORY"},
		{kind: RayKilled, text: "killed due to memory pressure"},
	},
	facts: []string{"name={victim:word}, pid={pid:int}, memory used={rss_bytes:size})", "memory used={rss_bytes:size})", "threshold of {fraction:num}"},
}

// The kinds of shared memory.
const (
	SharedWorkers Kind = "shared-workers" // of a DataLoader
	SharedNCCL    Kind = "shared-nccl"
	SharedFile    Kind = "shared-file" // of another program
	BusError      Kind = "bus-error"   // a signal, most often for a page of /dev/shm that does not exist
)

// familyShared is of programs that cannot get more of /dev/shm.
var familyShared = &family{
	source: SourceProcess,
	host:   true,
	keys: []string{
		"buserror", "sharedmemoryobject", "sharedmemory(shm)", "unabletowritetofile", "unabletommap", "failedtoextend/dev/shm",
		"sharedmemorysegment/dev/shm", "/dev/shm", "outofsharedmemory",
	},
	wordings: []wording{
		{kind: SharedNCCL, text: "failed to extend /dev/shm/{file:word} to {request_bytes:int} bytes", source: SourceNCCL},
		{kind: SharedNCCL, text: "Error while creating shared memory segment /dev/shm/{file:word} (size {request_bytes:int})", source: SourceNCCL},
		{kind: SharedWorkers, text: "DataLoader worker (pid{:any}) is killed by signal: Bus error"},
		{kind: SharedWorkers, text: "Unexpected bus error encountered in worker"},
		{kind: SharedWorkers, text: "dataloader's workers are out of shared memory"},
		{kind: SharedFile, text: "unable to mmap {request_bytes:int} bytes from file </torch_"},
		{kind: SharedFile, text: "unable to {:word}open shared memory object <{:any}: No space left"},
		{kind: SharedFile, text: "unable to open shared memory object"},
		{kind: SharedFile, text: "unable to allocate shared memory(shm)"},
		{kind: SharedFile, text: "unable to write to file </torch"},
		{kind: SharedFile, text: "/dev/shm{:any}No space left on device"},
		{kind: SharedFile, text: "No space left on device{:any}/dev/shm"},
		{kind: BusError, line: `\btasks? [\d,-]+: Bus error\b|: line \d+: +\d+ Bus error\b|^\W*Bus error(?: \(core dumped\))?\W*$`},
	},
}

// The kinds of allocators of the host's memory.
const (
	HostRequest Kind = "host-request" // one allocation was refused
	HostUnknown Kind = "host-memory"  // of an unknown size
)

// familyAllocators is PyTorch's for the CPU (c10/core/impl/alloc_cpu.cpp), NumPy's,
// and those of languages.
var familyAllocators = &family{
	source: SourceCPU,
	host:   true,
	keys: []string{
		"defaultcpuallocator", "foranarray", "toallocatearraywithshape", "bad_alloc", "cannotallocatememory", "memoryallocationof", "memoryerror", "buynewram",
		"usingallavailableram", "morememorythanisavailable", "posix_memalign(", "cannotallocatevector", "ptxasfatal", "catastrophicerror", "c1060", "failtoallocmemory", "(-4:insufficientmemory)", "unabletommap", "[errno12]", "outofmemoryerror()",
	},
	wordings: []wording{
		{kind: HostRequest, text: "DefaultCPUAllocator: {:any}you tried to allocate {request_bytes:size}"},
		{kind: HostRequest, text: "not enough memory: you tried to allocate {request_bytes:size}. Buy new RAM"},
		{kind: HostRequest, text: "Unable to allocate {request_bytes:size} for an array"},
		{kind: HostRequest, text: "ArrowMemoryError: {:any}alloc of size {request_bytes:int} failed"},
		{kind: HostRequest, text: "cannot allocate vector of size {request_bytes:size}", source: SourceProcess},
		{kind: HostRequest, text: "Fail to alloc memory of {request_bytes:int} size, error code is 12"},
		{kind: HostRequest, text: "(-4:Insufficient memory) Failed to allocate {request_bytes:int} bytes", source: SourceProcess},
		{kind: HostRequest, text: "unable to mmap {request_bytes:int} bytes from file <{:any}>: Cannot allocate memory", source: SourceProcess},
		{kind: HostRequest, text: "memory allocation of {request_bytes:int} bytes failed", source: SourceProcess},
		{kind: HostUnknown, text: "Unable to allocate array with shape"},
		{kind: HostUnknown, line: `enforce fail at .*posix_memalign\(.*12 vs 0`},
		{kind: HostUnknown, line: `std::bad_alloc\b|\bstd::bad_alloc'`, source: SourceProcess},
		{kind: HostUnknown, line: `^\W*(?:\w+\.)*_?(?:Array)?MemoryError\b`, source: SourceCPU},
		{kind: HostUnknown, line: `(?i)(?:errno 12\]?|error code 12|error:? ?12|oserror|runtimeerror|fatal|\berror\b).{0,120}cannot allocate memory`, source: SourceProcess},
		{kind: HostUnknown, line: `Error: \[Errno 12\]`, source: SourceProcess},
		{kind: HostUnknown, line: `\bOutOfMemoryError\(\)`, source: SourceProcess},                                                                                                       // Julia's
		{kind: HostUnknown, line: `\bptxas fatal *: *Memory allocation failure|\bcatastrophic error *: out of memory|error C1060: compiler is out of heap space`, source: SourceProcess}, // of compilers
		{kind: HostUnknown, line: `\bvirtual memory exhausted: Cannot allocate`, source: SourceProcess},                                                                                  // GCC's
		{kind: HostUnknown, line: `Your session crashed after using all available RAM`, source: SourceProcess},
		{kind: HostUnknown, line: `tried to allocate more memory than is available`, source: SourceProcess},
	},
	facts:    []string{"Free memory: {device_free_bytes:size}{:any}Requested memory: {request_bytes:size}"}, // XGBoost's
	harmless: lazyregexp.New(`(?i)Cannot ?allocate ?write\+execute ?memory|unable ?to ?mmap ?\d+ ?bytes ?from ?file ?</torch_.*`),
	read: func(e *excerpt, f *Failure) bool {
		if f.Figures[Request] == 0 { // "0GB", as it is rounded
			delete(f.Figures, Request)
		}
		if f.Kind == HostUnknown && strings.Contains(f.Quote, "Errno 12") && startsProcess.Match(e.raw) {
			f.Kind, f.Source = ForkRefused, SourceProcess
		}
		// RAPIDS and Thrust throw the same of a device.
		if bytes.Contains(e.raw, []byte("Maximum pool size exceeded")) {
			return false // RMM's, of a device
		}
		if bytes.Contains(e.raw, []byte("cudaErrorMemoryAllocation")) || bytes.Contains(e.raw, []byte("out_of_memory: CUDA")) || bytes.Contains(e.raw, []byte("cudaMalloc")) || bytes.Contains(e.raw, []byte("cuMemAlloc")) {
			f.Host, f.Source, f.Kind = false, SourceDriver, DriverMemory
		}
		return !exceptIn.MatchString(f.Quote)
	},
}

// startsProcess is a line of Python's modules that start processes.
var startsProcess = lazyregexp.New(`\bos\.fork\(\)|\bfork_exec\(`)

// WindowsCommit is the limit of what all programs may have together.
const (
	WindowsCommit Kind = "windows-commit"
	WindowsLow    Kind = "windows-low" // event 2004, of the resource exhaustion detector
)

// familyWindows is of Windows: ERROR_COMMITMENT_LIMIT and similar errors.
var familyWindows = &family{
	source: SourceWindows,
	host:   true,
	keys: []string{"lowvirtualmemorycondition", "pagingfileistoosmall", "winerror1455", "oserror1455", "error1455", "notenoughmemoryresources", "winerror1450", "winerror8]", "notenoughquota",
		"页面文件太小", "ページングファイルが小さすぎ", "페이징파일이너무작", "auslagerungsdateiistzuklein", "айлподкачкислишкоммал", "fichierdepaginationestinsuff"},
	wordings: []wording{
		{kind: DirectML, line: `(?:DmlExecutionProvider|DirectML|torch_directml).*Not enough memory resources`, source: SourceDirectML},
		{kind: WindowsLow, text: "low virtual memory condition. The following programs consumed the most virtual memory: {victim:word} ({pid:int}) consumed {process_bytes:int} bytes"},
		{kind: WindowsLow, text: "low virtual memory condition"},
		{kind: WindowsCommit, text: "paging file is too small"},
		{kind: WindowsCommit, text: "WinError 1455"},
		{kind: WindowsCommit, text: "os error 1455"},
		{kind: WindowsCommit, text: "error 1455"},
		{kind: WindowsCommit, text: "Not enough memory resources are available"},
		{kind: WindowsCommit, text: "WinError 1450"},
		{kind: WindowsCommit, text: "Not enough quota is available"},
		{kind: WindowsCommit, text: "页面文件太小"},
		{kind: WindowsCommit, text: "ページング ファイルが小さすぎ"},
		{kind: WindowsCommit, text: "페이징 파일이 너무 작"},
		{kind: WindowsCommit, text: "Auslagerungsdatei ist zu klein"},
		{kind: WindowsCommit, text: "айл подкачки слишком мал"},
		{kind: WindowsCommit, text: "fichier de pagination est insuff"},
		{kind: WindowsCommit, text: "WinError 8]"},
	},
	read: func(_ *excerpt, f *Failure) bool {
		f.Host = f.Kind != DirectML
		return true
	},
}

// ProcessKilled is a process that ended with signal 9, for any reason.
const ProcessKilled Kind = "killed"

// familyProcess is of launchers and shells that report how a process ended.
var familyProcess = &family{
	source: SourceProcess,
	host:   true,
	weak:   true,
	keys: []string{
		"killed", "sigkill", "returncode=-9", "exitcode:-9", "exitcode-9", "exitcode=-9", "exitstatus137", "exitcode:137", "exitcode137", "code137", "code=137", "signal9", "signal:9",
		"status137", "code(137", `code":137`, `code\":137`, "returncode-9", "errorcode-9", "errorcode:-9", "returncode:-9",
		"excessivememoryusagecausing", "lowmemorykiller:",
		"杀死", "processusarr", "getötet", // as shells say it in other languages
	},
	lines:    2,
	nearby:   []string{"reason:", `"reason":`, "cpuvirtualmemory:", "cpumemoryusage", "cpumemoryused", "cpumemusage", "ramusage", "hostmemoryusage", "processmemoryusage"},
	harmless: lazyregexp.New(`forcefully exiting via (?:Signals\.)?SIGKILL|` + supposedKill), // torchrun's, of workers that outlast another's end
	wordings: []wording{
		{kind: ProcessKilled, line: `(?i)DataLoader (?:worker|process) ?\(pid.{0,40}\) (?:exited )?is killed by signal: ?Killed`},
		{kind: ProcessKilled, line: `(?i)(?:return|exit|\berror) ?code(?: is)? ?[:=]? ?-9\b`},
		{kind: ProcessKilled, line: `(?i)exit ?code ?: ?-9\b`},
		{kind: ProcessKilled, line: `(?i)(?:exit(?:ed)?(?: with)?(?: non-zero)? (?:code|status)|status|code)[:=" (\\]+137\b`},
		{kind: ProcessKilled, line: `(?i)\bsignal[:= ]+(?:9|SIGKILL)\b`},
		{kind: ProcessKilled, line: `(?i)\b(?:killed|died|terminated|interrupted|exited|sent)\b.{0,40}(?:SIGKILL|signal 9)`},
		{kind: ProcessKilled, line: `SIGKILL\(-9\)|\(SIGKILL\)|Signals\.SIGKILL`},
		{kind: ProcessKilled, line: `^\S*(?:.*: line \d+: +\d+|zsh: (?:\d+ )?|\[\d+\]\W+\d*|bash: .*) ?[Kk]illed\b`},
		{kind: ProcessKilled, line: `^\W*Killed\W*$`},
		{kind: ProcessKilled, line: `^\s*[\[(][^\[\]()]{1,60}[\])]:?\s+Killed\s*$|^\{"log": ?"Killed\\n"`}, // of a rank, of a container
		{kind: ProcessKilled, line: `^[\s>|#]*` + beforeKilled + `+\W*Killed\W*$`},
		{kind: ProcessKilled, line: `(?:"(?:log|msg|message|MESSAGE|line|text|textPayload|body|error)" ?: ?"|\\n)` + beforeKilled + `*\*{0,2}Killed\*{0,2}(?:\\n|")`},
		{kind: ProcessKilled, line: `(?i)\bkilled\b.{0,20}\b(?:out of memory|OOM)\b`},
		{kind: ProcessKilled, line: `\bexited with error: signal: killed\b`},                                                                                           // of AWS Lambda
		{kind: ProcessKilled, line: `\bKilled (?:signal terminated program \S+|\(program \S+\))`},                                                                      // of GCC's compilers
		{kind: ProcessKilled, line: `lowmemorykiller: Kill '`},                                                                                                         // of Android
		{kind: ProcessKilled, text: "caused by a {or:any} while calling the function or by an excessive memory usage causing the Operating System to kill the worker"}, // joblib's
		{kind: ProcessKilled, line: `(?:^|: line \d+:.*|：.*|\s)已?杀死(?:\s|$)|^\W*Processus arrêté\W*$|^\W*Getötet\W*$`},
	},
	facts: []string{
		"CPU Virtual Memory: used = {used:size}, percent = {percent:num}%",
		"CPU memory usage: {rss_bytes:size}", "CPU memory usage {rss_bytes:size}", "CPU memory usage = {rss_bytes:size}", "CPU memory used: {rss_bytes:size}", "CPU mem usage: {rss_bytes:size}",
		"CPU memory usage (MB): {rss_bytes:mib}", "CPU memory usage (GB): {rss_bytes:gib}",
		"RAM usage: {rss_bytes:size}", "host memory usage: {rss_bytes:size}", "process memory usage: {rss_bytes:size}",
		"Memory Size: {limit_bytes:mib} Max Memory Used: {usage:mib}",
	},
	read: func(e *excerpt, f *Failure) bool {
		if m := containerReason.FindSubmatch(e.raw); m != nil && !bytes.Contains(e.raw, []byte("OOMKill")) {
			f.Words["reason"] = string(m[1])
		}
		const minBytes = 1 << 20 // less is a share of the host
		if f.Figures[RSS] < minBytes {
			delete(f.Figures, RSS)
		}
		return true
	},
}

// containerReason is the reason that Kubernetes states beside the exit code of a container.
var containerReason = lazyregexp.New(`(?i)\breason"?:? *[":\[ ]+(Error|ContainerStatusUnknown|DeadlineExceeded|Completed)\b`)

// supposedKill is a remark on any process that may be killed, as requests for features make.
const supposedKill = `(?i:\b(?:(?:if|when|whether) any|if an?) (?:\w+ )?(?:process|container|pod|worker|job|task)\b.{0,40}\b(?:killed|OOM\w*)\b)`

// beforeKilled is what can be before the shell's word: times, the names of pods and of
// streams, and the bar of a progress that does not end.
const beforeKilled = `(?:(?:` + text.SyslogPrefix + `|\[[^\[\]]{1,80}\]|\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?|\d\d:\d\d:\d\d[\d.,]*|[\w.-]{1,60} +\||std(?:out|err)(?: [FP])?|.{0,40}\d{1,3}%\|.*(?:it/s|s/it)[^\]]{0,40}\]):? *)`
