package failure

// The kinds of programs that limit the host's memory themselves.
const (
	HeapLimit    Kind = "heap-limit"    // the heap of a language's runtime is full
	WorkerLimit  Kind = "worker-limit"  // a cluster's worker exceeded its limit
	MonitorKill  Kind = "monitor-kill"  // a daemon ended a process before the kernel had to
	ForkRefused  Kind = "fork-refused"  // a process could not be started
	SpillRefused Kind = "spill-refused" // Spark could not split its work any further
	ServiceLimit Kind = "service-limit" // a service or a platform has a limit for the program
)

// familyHeap is of runtimes and of managers of clusters that enforce a limit
// on a program's host memory: java.lang, V8, dask.distributed's nanny, YARN, earlyoom, and
// the RAPIDS plugin of Spark, which has one for the device too.
var familyHeap = &family{
	source: SourceProcess,
	host:   true,
	keys: []string{
		"java.lang.outofmemoryerror", "heapoutofmemory", "fatalprocessoutofmemory(", "runtime:outofmemory", "memorybudget", "forexceedingmemorylimits", "beyondphysicalmemorylimits", "beyondvirtualmemorylimits", "'physical'memorylimit", "'virtual'memorylimit",
		"sendingsigtermtoprocess", "sendingsigkilltoprocess", "puoutofmemory:", "fork:", "goneovermemorylimit",
		"jvmheapspaceisexhausted", "resource_type_memory", "considerincreasingthememorylimit", "(memoryquota", "memory_limit_exceeded", "killedduetomemoryusage", "maxmemory'",
	},
	nearby: []string{"memavail:"},
	lines:  2,
	wordings: []wording{
		{kind: HeapLimit, line: `java\.lang\.OutOfMemoryError`},
		{kind: HeapLimit, text: "JavaScript heap out of memory"},
		{kind: HeapLimit, text: "v8::internal::V8::FatalProcessOutOfMemory("},
		{kind: HostRequest, text: "runtime: out of memory: cannot allocate {request_bytes:int}-byte block ({held:int} in use)"}, // Go's
		{kind: HostUnknown, line: `\bfatal error: runtime: out of memory`},
		{kind: HeapLimit, text: "JVM heap space is exhausted"},                                                                                               // Gradle's
		{kind: ServiceLimit, text: "EXC_RESOURCE RESOURCE_TYPE_MEMORY (limit={limit_bytes:size}"},                                                            // Apple's
		{kind: ServiceLimit, text: "Memory limit of {limit_bytes:size} exceeded with {usage:size} used. Consider increasing the memory limit"},               // Cloud Run's
		{kind: ServiceLimit, text: "Error R15 (Memory quota vastly exceeded)"},                                                                               // Heroku's
		{kind: ServiceLimit, text: "Container killed due to memory usage"},                                                                                   // of Amazon ECS
		{kind: ServiceLimit, text: "exceeded: would use {usage:size} (attempt to allocate chunk of {request_bytes:int} bytes), maximum: {limit_bytes:size}"}, // ClickHouse's
		{kind: ServiceLimit, text: "OOM command not allowed when used memory > 'maxmemory'"},                                                                 // Redis's
		{kind: WorkerLimit, text: "exceeded {percent:num}% memory budget. Restarting"},
		{kind: WorkerLimit, text: "killed by YARN for exceeding memory limits. {usage:size} of {limit_bytes:size} physical memory used"},
		{kind: WorkerLimit, text: "killed by YARN for exceeding memory limits. {usage:size} of {limit_bytes:size} virtual memory used"},
		{kind: WorkerLimit, text: "killed by YARN for exceeding memory limits"},
		{kind: WorkerLimit, text: "beyond the 'PHYSICAL' memory limit. Current usage: {usage:size} of {limit_bytes:size} physical memory used"},
		{kind: WorkerLimit, text: "beyond the 'VIRTUAL' memory limit{:any}physical memory used; {usage:size} of {limit_bytes:size} virtual memory used"},
		{kind: WorkerLimit, text: "running beyond virtual memory limits{:any}physical memory used; {usage:size} of {limit_bytes:size} virtual memory used"},
		{kind: WorkerLimit, text: "running beyond physical memory limits. Current usage: {usage:size} of {limit_bytes:size} physical memory used"},
		{kind: WorkerLimit, text: "gone over memory limit of {limit_bytes:mib} megabytes. Peak usage: {rss_bytes:mib} megabytes"},
		{kind: WorkerLimit, text: "gone over memory limit of {limit_bytes:mib} megabytes"},
		{kind: MonitorKill, text: `process {pid:int} uid {:int} "{victim:any}": {:any}VmRSS {rss_bytes:mib}`},
		{kind: MonitorKill, text: `process {pid:int} "{victim:any}": {:any}VmRSS {rss_bytes:mib}`},
		{kind: SpillRefused, text: "CPU OutOfMemory: could not split"},
		{kind: ForkRefused, line: `(?i)\bfork: .*cannot allocate memory`},
	},
	facts: []string{"mem avail: {:int} of {capacity_bytes:mib}"},
}
