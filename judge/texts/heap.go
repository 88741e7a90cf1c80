package texts

import (
	"strandline/judge/shortage"
	"strandline/logs/failure"
)

// heapKinds are the failures at limits on host memory that a program sets itself.
var heapKinds = map[failure.Kind]func(*view){
	failure.HeapLimit: (*view).heap, failure.WorkerLimit: (*view).worker, failure.MonitorKill: (*view).monitor,
	failure.ForkRefused: (*view).fork, failure.SpillRefused: (*view).worker, failure.ServiceLimit: (*view).platform,
}

// heap is the limit on a runtime's heap.
func (v *view) heap() {
	v.cause(shortage.Limit)
	v.title("the heap of the program's runtime is full: a limit in the host's memory, not the GPU's")
	v.say("Java and Node.js take no more for their heaps than they were started with, however much the machine has")
	v.do("a larger heap: -Xmx for Java (spark.driver.memory, spark.executor.memory for Spark), NODE_OPTIONS=--max-old-space-size for Node.js; or less kept in it")
	v.traceHost()
}

// worker is the limit that a cluster's manager has set for one of its workers.
func (v *view) worker() {
	v.cause(shortage.Limit)
	v.title("a worker exceeded its memory limit: the host's memory, not the GPU's")
	if v.states(failure.Limit) {
		v.title("a worker exceeded its limit of %s: the host's memory, not the GPU's", v.size(failure.Limit))
	}
	v.say("the cluster's manager ends a worker that comes near its limit, and starts it again")
	v.do("more memory for each worker, fewer workers, or smaller partitions. Dask: --memory-limit, --nworkers. Spark: spark.executor.memory, memoryOverhead")
	v.traceHost()
}

// monitor is a process that a daemon such as earlyoom ended.
func (v *view) monitor() {
	v.title("%s was ended as the host's memory ran low, not the GPU's", v.victim())
	if v.states(failure.RSS) {
		v.title("%s was ended with %s resident, as the host's memory ran low, not the GPU's", v.victim(), v.size(failure.RSS))
	}
	v.say("a daemon such as earlyoom ends the largest process before the kernel has to")
	v.lessHost()
	v.traceHost()
}

// platform is a limit that a platform has for a program, or a service for itself.
func (v *view) platform() {
	v.cause(shortage.Limit)
	v.title("a memory limit that is set for the program is reached: the host's memory, not the GPU's")
	if v.states(failure.Limit) {
		v.title("the program's memory limit of %s is reached: the host's memory, not the GPU's", v.size(failure.Limit))
	}
	v.do("raise the limit of the service, dyno or task, or have the program hold less at once. ClickHouse: max_memory_usage. Redis: maxmemory. iOS: the entitlement increased-memory-limit")
	v.traceHost()
}

// fork is a process that could not be started.
func (v *view) fork() {
	v.title("a process could not be started: the host's memory, or its commit limit, is reached")
	v.say("the shell could not make a copy of itself. With vm.overcommit_memory=2, or a limit of the container or of ulimit -v, free RAM does not help")
	v.lessHost()
	v.traceHost()
}
