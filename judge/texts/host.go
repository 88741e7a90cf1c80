package texts

import (
	"fmt"
	"strconv"
	"strings"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/units"
)

// hostKinds are the failures of the host's memory.
var hostKinds = map[failure.Kind]func(*view){
	failure.KernelKill: (*view).kernel, failure.CgroupKill: (*view).cgroup, failure.ServiceKill: (*view).service,
	failure.PressureKill: (*view).pressure,
	failure.PodKilled:    (*view).pod, failure.PodEvicted: (*view).evicted, failure.SlurmKilled: (*view).slurm, failure.RayKilled: (*view).ray,
	failure.SharedWorkers: (*view).shared, failure.SharedNCCL: (*view).shared, failure.SharedFile: (*view).shared, failure.BusError: (*view).busError,
	failure.HostRequest: (*view).hostRequest, failure.HostUnknown: (*view).hostRequest, failure.WindowsCommit: (*view).windows, failure.WindowsLow: (*view).windowsLow,
	failure.ProcessKilled: (*view).killed,
}

// traceHost adds how to see what is in a process's memory.
func (v *view) traceHost() {
	v.set("strandline trace --pid PID", "watch the next run: which part of the host's memory grows, and which code takes it")
}

// kernelLog adds where the kernel reports a kill.
func (v *view) kernelLog() {
	v.set("journalctl -k | grep -iE 'oom|killed process'", "the kernel's log (dmesg) shows whether it was because of memory, which process, and how much it held")
	v.traceHost()
}

// lessHost adds what makes a program use less host memory.
func (v *view) lessHost() {
	if v.hint(failure.HintDeepSpeed) {
		v.do("more RAM, or less on the host: offload_optimizer and offload_param to NVMe, fewer processes on the node. Adam's optimizer state takes 12 bytes per parameter on the host")
		return
	}
	v.do("more RAM for the job, or less in it: fewer DataLoader workers (num_workers), fewer processes at once. Load the checkpoint once (low_cpu_mem_usage, mmap), not by every rank")
}

// victim is the process that was killed, in words.
func (v *view) victim() string {
	name := v.f.Words["victim"]
	if name == "" {
		name = "a process"
	}
	if pid, ok := v.f.Figure("pid"); ok {
		name += fmt.Sprintf(" (pid %d)", pid)
	}
	return name
}

// holders states who else held memory according to the kernel's table, and returns the largest
// in words and its bytes.
func (v *view) holders() (largest string, most int64) {
	var list []string
	for line := range strings.Lines(v.f.Words["others"]) {
		fields := strings.Fields(line)
		const parts = 3
		if len(fields) < parts {
			continue
		}
		n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
		if err != nil || n == 0 {
			continue
		}
		if n<<10 > most {
			largest, most = strings.Join(fields[:len(fields)-2], " "), n<<10
		}
		list = append(list, fmt.Sprintf("%s by %s (%s)", units.Bytes(n<<10), strings.Join(fields[:len(fields)-2], " "), fields[len(fields)-2]))
	}
	if len(list) > 0 {
		v.say("the kernel's table shows, with pages of 4 KiB: %s", strings.Join(list, ", "))
	}
	return largest, most
}

// kernel is a kill by the kernel because the host had no memory left.
func (v *view) kernel() {
	v.title("%s was killed: the host's memory ran out, not the GPU's", v.victim())
	if v.states(failure.RSS) {
		v.cause(shortage.TooBig)
		v.title("%s was killed with %s resident: the host's memory ran out, not the GPU's", v.victim(), v.size(failure.RSS))
	}
	switch c := v.f.Words["constraint"]; {
	case strings.EqualFold(c, "CPUSET"), strings.EqualFold(c, "MEMORY_POLICY"):
		v.say("only a part of the machine was full: a NUMA node to which the process is bound")
	default:
		v.say("the whole machine was full, RAM and swap, not one program's limit")
	}
	if by := v.f.Words["invoker"]; by != "" {
		v.say("%s asked for memory when there was none; which process the kernel then killed is not in the text", by)
	}
	largest, most := v.holders()
	if rss := v.f.Figures[failure.RSS]; rss > 0 && float64(most) > 2*rss {
		v.title("%s was killed with %s resident, but %s holds the most, %s: the host's memory ran out, not the GPU's", v.victim(), v.size(failure.RSS), largest, units.Bytes(most))
		v.do("look at %s first: it holds %s, and the kernel chose a process with a higher score", largest, units.Bytes(most))
	}
	if v.smallVictim() {
		v.say("%s is a small part of a full machine: other processes hold the memory. See the kernel's table of tasks above the kill (dmesg)", v.size(failure.RSS))
		v.say("on unified memory (GB10, Jetson, an APU) weights and KV cache fill the same memory, but no resident size")
		v.do("find the owner of the rest: the largest row of the kernel's table above the kill (dmesg). On unified memory give an engine a smaller share (gpu_memory_utilization)")
	} else {
		v.say("the kernel kills the process with the highest score, mostly the largest; another one may have grown")
	}
	v.lessHost()
	v.traceHost()
}

// smallVictim reports whether the process that was killed held too little to have filled a
// machine.
func (v *view) smallVictim() bool {
	const small, part = 2 << 30, 8
	rss, ok := v.f.Figures[failure.RSS]
	if capacity := v.f.Figures[failure.Capacity]; ok && capacity > 0 {
		return part*rss < capacity
	}
	return ok && rss < small
}

// cgroup is a kill by the kernel at the limit of a cgroup.
func (v *view) cgroup() {
	v.cause(shortage.Limit)
	v.title("%s was killed at the memory limit of its cgroup: the host's memory, not the GPU's", v.victim())
	if v.states(failure.Limit) {
		v.title("%s was killed at the limit of %s of its cgroup: the host's memory, not the GPU's", v.victim(), v.size(failure.Limit))
	}
	if v.states(failure.RSS) {
		v.say("it had %s resident", v.size(failure.RSS))
	}
	if c := v.f.Words["cgroup"]; c != "" {
		v.say("the limit belongs to %s; page cache, /dev/shm and the kernel's own memory also count", c)
	}
	v.holders()
	v.do("raise the limit: --memory (container), resources.limits.memory (pod), --mem (Slurm job), MemoryMax (service)")
	v.lessHost()
	v.traceHost()
}

// service is systemd's report that the kernel killed something.
func (v *view) service() {
	v.title("a process of a service was killed: the host's memory ran out, or the service reached its limit")
	if v.states(failure.RSS) {
		v.title("a service was killed at %s: the host's memory ran out, or the service reached its limit", v.size(failure.RSS))
	}
	if v.states("entry") {
		v.say("it was saving a prompt of %s to llama.cpp's prompt cache in host memory (--cache-ram, 8 GiB by default)", v.size("entry"))
		v.set("--cache-ram 0", "turn the prompt cache off, or give it less: one entry can exceed its limit while it is saved")
	}
	v.lessHost()
	v.kernelLog()
}

// pressure is a kill by a daemon that does not wait until the memory is full.
func (v *view) pressure() {
	of := v.f.Words["cgroup"]
	if of == "" {
		of = "a cgroup"
	}
	v.title("the processes of %s were killed by an out-of-memory daemon: the host's memory was short, not the GPU's", of)
	switch {
	case v.states("used", failure.Capacity):
		v.cause(shortage.Limit)
		v.say("%s of %s RAM and %s of %s swap were in use, more than the %g %% that are allowed", v.size("used"), v.size(failure.Capacity),
			v.size("swap"), v.size("swap_total"), v.f.Figures["threshold"])
	case v.states("swap", "swap_total"):
		v.cause(shortage.Limit)
		v.say("%s of %s swap were in use, more than the %g %% that are allowed", v.size("swap"), v.size("swap_total"), v.f.Figures["threshold"])
	case v.states("pressure", "threshold"):
		v.cause(shortage.Limit)
		v.say("processes waited for memory %g %% of the time, more than the %g %% that are allowed; memory can have been left", v.f.Figures["pressure"], v.f.Figures["threshold"])
	case v.states("pressure"):
		v.say("processes waited for memory %g %% of the last 10 s", v.f.Figures["pressure"])
	}
	if v.states("held") {
		v.say("it held %s", v.size("held"))
	}
	v.say("it kills a whole cgroup: run the job in its own (systemd-run --scope)")
	v.lessHost()
	if v.f.Words["slice"] != "" || v.states("swap") {
		v.set("systemctl show -p ManagedOOMMemoryPressure,ManagedOOMMemoryPressureLimit,ManagedOOMSwap UNIT", "shows the limits of a unit; ManagedOOMPreference=omit in the unit of a job leaves it to the kernel")
	}
	v.traceHost()
}

// pod is a container that was killed at its limit.
func (v *view) pod() {
	v.cause(shortage.Limit)
	v.title("a container was killed at its memory limit: the host's memory, not the GPU's")
	if v.states(failure.Limit) {
		v.title("a container was killed at its limit of %s: the host's memory, not the GPU's", v.size(failure.Limit))
	}
	v.say("page cache that cannot be reclaimed and /dev/shm (an emptyDir of medium Memory) count against the limit")
	v.do("raise resources.limits.memory of the container. A job that ends within seconds needs more to load its model, one that ends after hours grows")
	v.lessHost()
	v.traceHost()
}

// evicted is a pod that had to leave a full node.
func (v *view) evicted() {
	v.title("a pod was evicted: its node was low on memory (RAM)")
	if v.states("threshold_bytes", failure.Available) {
		v.cause(shortage.Limit)
		v.title("a pod was evicted: its node had %s of memory (RAM) available, less than the kubelet's threshold of %s", v.size(failure.Available), v.size("threshold_bytes"))
	}
	if v.states(failure.RSS) {
		v.say("its container %s was using %s", v.f.Words["victim"], v.size(failure.RSS))
	}
	v.say("the kubelet evicts pods when the node's available memory falls below its threshold, those above their requests first")
	v.do("set resources.requests.memory to the pod's need: it is then scheduled where that much is free, and evicted last")
	v.traceHost()
}

// slurm is a job at its limit, which is always a limit on host memory.
func (v *view) slurm() {
	v.cause(shortage.Limit)
	if v.batch() {
		return
	}
	v.title("Slurm killed a process of the job at its memory limit: the host's memory, not the GPU's")
	if node := v.f.Words["node"]; node != "" {
		v.title("Slurm killed task %s on %s at the job's memory limit: the host's memory, not the GPU's", v.f.Words["task"], node)
	}
	v.set("#SBATCH --mem=128G", "ask for more of the node's memory for the job (--mem, or --mem-per-cpu, --mem-per-gpu)")
	v.set("sacct -j JOBID --format=JobID,ReqMem,MaxRSS,State", "see how much memory the job used, and how much it was allowed")
	v.lessHost()
	v.traceHost()
}

// batch is a job that LSF or PBS killed; false if it was neither.
func (v *view) batch() bool {
	system, setting := "", ""
	switch quote := v.f.Quote; {
	case strings.Contains(quote, "TERM_MEMLIMIT"):
		system, setting = "LSF", "#BSUB -M 128GB"
	case strings.Contains(quote, "PBS"):
		system, setting = "PBS", "#PBS -l mem=128gb"
	default:
		return false
	}
	v.title("%s killed the job at its memory limit: the host's memory, not the GPU's", system)
	if v.states(failure.Limit) {
		v.title("%s killed the job at its memory limit of %s: the host's memory, not the GPU's", system, v.size(failure.Limit))
	}
	v.set(setting, "ask for more of the node's memory for the job")
	v.lessHost()
	v.traceHost()
	return true
}

// ray is a worker that Ray killed because its node was full.
func (v *view) ray() {
	v.cause(shortage.Limit)
	v.title("Ray killed a worker: its node's memory (RAM) was nearly full")
	if v.states(failure.Capacity, "used") {
		v.title("Ray killed a worker: its node had %s of %s of memory (RAM) in use", v.size("used"), v.size(failure.Capacity))
	}
	if v.states(failure.RSS) {
		v.say("the worker itself, %s, held %s: Ray chooses by its policy, so look at the largest in its list", v.victim(), v.size(failure.RSS))
	}
	v.set("@ray.remote(memory=8 * 1024**3)", "declare the need of a task, so that fewer run in parallel on a node; or more CPUs per task (num_cpus)")
	v.do("more RAM, or a smaller object store (--object-store-memory); RAY_memory_usage_threshold=0.98 only delays the end")
	v.traceHost()
}

// shared is shared memory that could not be allocated.
func (v *view) shared() {
	v.title("shared memory ran out: /dev/shm is full; it is the host's memory, not the GPU's")
	v.cause(shortage.Limit)
	if v.states(failure.Request) {
		v.title("shared memory ran out: /dev/shm could not provide %s; it is the host's memory, not the GPU's", v.size(failure.Request))
	}
	v.say("a container has 64 MiB of it by default; DataLoader workers, NCCL and vLLM's processes share tensors through it")
	v.set("docker run --shm-size=16g", "more of it for the container (or --ipc=host); in Kubernetes an emptyDir of medium Memory at /dev/shm")
	if v.f.Kind == failure.SharedNCCL {
		v.set("NCCL_SHM_DISABLE=1", "let NCCL do without it, slower")
	} else {
		v.do("fewer DataLoader workers (num_workers) with less prefetch_factor, or torch.multiprocessing.set_sharing_strategy('file_system')")
	}
	v.set("df -h /dev/shm; ls -l /dev/shm", "see how large it is, and the leftovers of an earlier run")
}

// busError is a process that touched a page without memory, whoever was to give it.
func (v *view) busError() {
	v.shared()
	v.figures.Cause, v.Confidence, v.Basis = "", 0.7, "most bus errors are a full /dev/shm"
	v.title("a process died of a bus error: most likely /dev/shm is full, the host's memory, not the GPU's")
	v.say("a mapped file that was cut short, and a failing disk, end a process in the same way")
}

// hostRequest is an allocation of host memory that was refused.
func (v *view) hostRequest() {
	v.title("the host's memory (RAM) ran out")
	if v.states(failure.Request) {
		v.cause(shortage.TooBig)
		v.title("the host's memory (RAM) ran out: %s was requested at once", v.size(failure.Request))
	}
	v.say("the refused memory is the host's, not the GPU's")
	const little = 512 << 20 // then it is what holds the rest that counts
	n, stated := v.f.Figure(failure.Request)
	windows := func() {
		if v.hint(failure.HintWindows) {
			v.do("on Windows the commit limit counts, RAM and page file together: a larger page file")
		}
	}
	if stated && n < little {
		windows()
		v.lessHost()
	}
	v.do("make the one allocation smaller: a shorter input, a smaller batch or chunks, a smaller dtype. A size that cannot be intended, such as a whole dataset or n × n, is a mistake in shapes")
	if !stated || n >= little {
		v.lessHost()
		windows()
	}
	v.traceHost()
}

// windows is the commit limit of Windows.
func (v *view) windows() {
	v.cause(shortage.Limit)
	v.title("the commit limit of Windows is reached: RAM and page file together, the host's memory, not the GPU's")
	v.say("mapping a checkpoint and each process with CUDA's libraries commit memory that they may never touch")
	v.do("a larger page file (System, Advanced, Performance, Virtual memory), such as 64 GB on a fast disk; end other programs")
	v.do("fewer processes: num_workers=0 in the DataLoader; a smaller model, or one that is loaded in parts")
}

// windowsLow is the event with which Windows names the programs that use most of its commit limit.
func (v *view) windowsLow() {
	v.cause(shortage.Limit)
	v.title("Windows ran low on virtual memory: RAM and page file together, the host's memory, not the GPU's")
	if v.states(failure.InProcess) {
		v.title("Windows ran low on virtual memory: %s had committed %s of RAM and page file, the host's memory", v.f.Words["victim"], v.size(failure.InProcess))
	}
	v.do("have that program commit less: fewer workers, smaller parts")
	v.do("a larger page file (System, Advanced, Performance, Virtual memory), such as 64 GB on a fast disk; end other programs")
}

// otherReason is a container that signal 9 ended, of which Kubernetes states another reason
// than memory.
func (v *view) otherReason() {
	v.Kind, v.Evidence, v.Severity, v.Confidence, v.Basis = finding.Ended, nil, finding.Warning, 0.5, "the reason in the text"
	v.title("a container was killed (signal 9), not known to be for memory: Reason is %s, not OOMKilled", v.f.Words["reason"])
	v.say("failed liveness probes, evictions and a node without memory kill with the same signal")
	v.set("kubectl describe pod POD; kubectl get events --field-selector involvedObject.name=POD", "look for OOMKilled, Evicted, Unhealthy or Killing")
	v.set("journalctl -k | grep -iE 'oom|killed process'", "on the node: the kernel's log shows every kill for memory")
}

// killed is a process that was ended by signal 9.
func (v *view) killed() {
	if v.f.Words["reason"] != "" {
		v.otherReason()
		return
	}
	v.Confidence = 0.7
	v.Basis = "signal 9 is mostly sent by the kernel because of memory; the text does not say so"
	v.title("a process was killed (signal 9), most likely for the host's memory, not the GPU's")
	if v.f.Words["or"] != "" {
		v.Confidence = 0.5
		v.Basis = "the text names both as possible"
		v.title("a worker process ended: it was killed for the host's memory, not the GPU's, or it crashed")
	}
	if usage := v.f.Figures["usage"]; v.states(failure.Limit) && usage >= v.f.Figures[failure.Limit] {
		v.cause(shortage.Limit)
		v.Confidence = 1
		v.Basis = "what the text states"
		v.title("a function was killed at its memory limit of %s: the host's memory, not the GPU's", v.size(failure.Limit))
		v.do("raise the function's memory (Memory Size), or have it hold less at once")
	}
	if v.states("used", "percent") && v.f.Figures["percent"] > 0 {
		used, percent := v.f.Figures["used"], v.f.Figures["percent"]
		v.say("before that the host had %s in use, %.0f %% of about %s", v.size("used"), percent, sizeOf(used/percent*100))
		const nearlyFull = 90
		if percent >= nearlyFull {
			v.cause(shortage.TooBig)
			v.Confidence = 0.9
			v.Basis = "signal 9, and a host whose memory was nearly full before it"
		}
	}
	if v.states(failure.RSS) {
		v.title("a process was killed (signal 9), most likely for the host's memory, not the GPU's: the program had %s in use before", v.size(failure.RSS))
	}
	v.kernelLog()
	v.lessHost()
}
