// Package sample holds what a watch sees at one moment: the processes, what each of them
// holds on the host and on devices, and how much is left until a limit. It is plain data,
// which is printed, stored and judged; package host/sampling/sampler takes samples of a machine.
//
// What is unknown is nil, never 0: a process that may not be inspected, a driver that
// does not answer. A note states why.
package sample

import (
	"time"

	"strandline/units"
)

// Schema is that of a [Sample] that stands alone.
const Schema = "strandline.sample/1"

// A Sample is one moment. Sizes are bytes.
type Sample struct {
	Schema string    `json:"schema"`
	Time   time.Time `json:"time"` // by the clock of the machine, which can be set
	// Seconds since the watch began, by a clock that is never set.
	Seconds   float64   `json:"at_seconds"`
	Processes []Process `json:"processes"`
	// Devices is empty where none is known; DevicesNote states why, or why what it has is
	// not of this moment.
	Devices     []Device `json:"devices"`
	DevicesNote string   `json:"devices_note,omitempty"`
	Groups      []Group  `json:"groups"` // control groups of the processes
	Machine     *Machine `json:"machine"`
	// Load is that of the inference engine that was asked for; nil if none was.
	Load *Load `json:"load,omitempty"`
	// Over is set where the last processes have ended, and is what their control groups
	// count after that; nothing else is stated then.
	Over []Group `json:"-"`
}

// Load is what an inference engine reports of its work. What it does not report is nil.
type Load struct {
	Engine       string   `json:"engine"`              // "vllm" or "sglang"; empty if it cannot be read
	Running      *int64   `json:"running_requests"`    // being worked on
	Waiting      *int64   `json:"waiting_requests"`    // for room
	KVCache      *float64 `json:"kv_cache_used_ratio"` // of the fullest engine, 0 to 1
	Requests     *int64   `json:"finished_requests"`   // since the engine started, as are the tokens
	PromptTokens *int64   `json:"prompt_tokens"`
	OutputTokens *int64   `json:"output_tokens"`
	Note         string   `json:"note,omitempty"` // why it is not known
}

// InProgress is how many requests run or wait; nil if that is not known.
func (l *Load) InProgress() *int64 {
	if l == nil || l.Running == nil || l.Waiting == nil {
		return nil
	}
	n := units.Sum(*l.Running, *l.Waiting)
	return &n
}

// Tokens is how many tokens the engine has read and written; nil if that is not known.
func (l *Load) Tokens() *int64 {
	if l == nil || l.PromptTokens == nil || l.OutputTokens == nil {
		return nil
	}
	n := units.Sum(*l.PromptTokens, *l.OutputTokens)
	return &n
}

// An ID is one process: a number is given to another one when its process has ended.
type ID struct {
	PID     int
	Started uint64
}

// A Process is one that is watched.
type Process struct {
	PID int `json:"pid"`
	// Started is when it began, in clock ticks since the machine booted; 0 if it cannot
	// be seen.
	Started uint64 `json:"started_ticks,omitempty"`
	// Age is how old it was when the watch first saw it, seconds; nil if that is not
	// known.
	Age     *float64 `json:"age_at_first_seconds,omitempty"`
	Parent  int      `json:"parent,omitempty"`
	Name    string   `json:"name,omitempty"`
	Command string   `json:"command"`
	// State is what it does, in the kernel's words ("sleeping", "zombie"), or "not
	// visible" of one that only the driver of a device knows.
	State string `json:"state"`
	// Container is the id of its container, Pod the name or uid of its pod, Job that of
	// Slurm, Actor that of Ray. They are empty where it is in none.
	Container *string `json:"container"`
	Pod       string  `json:"pod,omitempty"`
	Job       string  `json:"slurm_job,omitempty"`
	Actor     string  `json:"ray_actor,omitempty"`
	Rank      *int    `json:"rank,omitempty"`
	// Launch is alike for the processes of one job, as [procfs.Process.Launch] gives it; empty if that
	// is unknown, and of a process without pausable memory.
	Launch string `json:"launch,omitempty"`
	// RayKills is the share of the machine's memory, or of its container's limit, from
	// which Ray kills such a worker; nil if it is none, or Ray does not watch memory.
	RayKills *float64 `json:"ray_kills_from,omitempty"`
	// PromptCache is the bound of the cache of prompts in main memory that llama.cpp's server keeps,
	// bytes; -1 if it has no bound, nil of other programs.
	PromptCache *int64 `json:"prompt_cache_bytes,omitempty"`
	// TaskEvents is of how many tasks Ray's gcs_server keeps events; -1 of all, nil of other programs.
	TaskEvents *int64 `json:"task_events,omitempty"`
	Group      string `json:"group,omitempty"` // the name of a [Group]

	Host        *Host `json:"host"` // nil of a zombie, and of one that is not visible
	Threads     *int  `json:"threads,omitempty"`
	Descriptors *int  `json:"descriptors,omitempty"`
	// Read is what it has read by calls since it began, bytes. It is looked at while it
	// is [Young].
	Read    *int64        `json:"read_bytes,omitempty"`
	Devices []DeviceShare `json:"devices"`
	// Outside is true if what PyTorch has of devices was read from outside, since the
	// process has no recorder.
	Outside bool `json:"read_from_outside,omitempty"`
	// Pausable is memory of devices that the process can give back for a time; nil if it
	// has none, or does not answer.
	Pausable []Tag `json:"pausable,omitempty"`
	// Grown is what its memory on the host grew by, as far as its mappings were looked at;
	// nil if they were not, as long as it does not grow.
	Grown *Growth `json:"grown,omitempty"`
	// Note states why something is not known.
	Note string `json:"note,omitempty"`
}

// Young is the age up to which a process may still load what it needs.
const Young = 2 * time.Minute

// Zombie is the state of a process that has ended and whose parent has not taken note.
const Zombie = "zombie"

// ID distinguishes a process from others of its number.
func (p *Process) ID() ID { return ID{p.PID, p.Started} }

// Host is the memory of a process on the host that is resident.
type Host struct {
	Anonymous int64 `json:"anonymous_bytes"` // its own: heap, stacks
	File      int64 `json:"file_bytes"`      // of mapped files, which the kernel can drop
	Shared    int64 `json:"shared_bytes"`    // with other processes: /dev/shm, pinned by CUDA
	Swapped   int64 `json:"swapped_bytes"`   // not resident
	Pinned    int64 `json:"pinned_bytes"`    // part of the others that was locked or pinned for transfers
}

// Resident is all of it that is in memory.
func (h *Host) Resident() int64 { return units.Sum(h.Anonymous, h.File, h.Shared) }

// Growth is what memory on the host grew by between two looks at a process's mappings.
type Growth struct {
	Seconds float64 `json:"seconds"` // between the looks
	Classes []Class `json:"classes"` // the largest first
	// Mappings are those that grew most, as they were at the second look.
	Mappings []Mapping `json:"mappings,omitempty"`
}

// A Mapping is one of a process's, as large as the kernel has it: it joins neighbors.
type Mapping struct {
	Start    uint64 `json:"start"`
	End      uint64 `json:"end"`
	Kind     string `json:"kind"`           // "heap", "arena", "anonymous", "memfd", …
	Name     string `json:"name,omitempty"` // its file, or what the kernel calls it
	Resident int64  `json:"resident_bytes"`
	Grown    int64  `json:"grown_bytes"` // of the addresses that it has now
}

// A Class is growth of one kind, such as "memfd" or "python-objects": those of the
// findings of a trace.
type Class struct {
	Class string `json:"class"`
	Bytes int64  `json:"bytes"`
}

// A DeviceShare is what a process holds of a device.
type DeviceShare struct {
	Device int    `json:"device"` // the index of a [Device]
	UUID   string `json:"uuid,omitempty"`
	// Used is all of it, by the driver's count.
	Used *int64 `json:"used_bytes"`
	// Allocated is what PyTorch's tensors have, and Cached what its allocator has
	// reserved in addition, with what of it is paused; nil where PyTorch does not report it.
	Allocated *int64 `json:"allocated_bytes"`
	Cached    *int64 `json:"cached_bytes"`
	// Other is the rest of Used: the context, libraries, graphs. What is paused is in no
	// part of Used.
	Other *int64 `json:"other_bytes"`
	// Pools are pools of CUDA graphs, and others of the program's own, in no region of pausable memory: parts of
	// Allocated and Cached, when they were last read; nil if they were not.
	Pools *Pools `json:"pools,omitempty"`
}

// Pools are some of PyTorch's pools, in bytes.
type Pools struct {
	All     int64 `json:"bytes"`
	Tensors int64 `json:"tensors_bytes"` // the part that tensors use
	// Split is what of Cached is in no such pool, and in segments of tensors, which stay with them.
	Split int64 `json:"split_bytes"`
	Stale bool  `json:"stale,omitempty"` // tags were paused or resumed since
}

// Reserved is what PyTorch's allocator took from the driver; nil where that is not
// known.
func (s *DeviceShare) Reserved() *int64 {
	if s.Allocated == nil || s.Cached == nil {
		return nil
	}
	n := units.Sum(*s.Allocated, *s.Cached)
	return &n
}

// A Tag is pausable memory of one name. What is paused has addresses, Bytes of them, and
// holds nothing.
type Tag struct {
	Tag         string `json:"tag"`
	Bytes       int64  `json:"bytes"`
	Held        int64  `json:"held_bytes"` // of devices
	State       string `json:"state"`      // active, paused or partial
	Backup      string `json:"backup"`     // none, pinned, pageable or file
	BackupBytes int64  `json:"backup_bytes"`
}

// A Group is a control group whose memory is limited or counted.
type Group struct {
	Name string `json:"name"` // its path
	// Used is what the kernel would count before it kills: without the pages of files
	// that it drops first.
	Used  *int64 `json:"used_bytes"`
	Limit *int64 `json:"limit_bytes"` // nil if there is none
	// Kills is how many of its processes the kernel has killed for lack of memory since
	// the group was made; nil if that is not known.
	Kills *int64 `json:"oom_kills,omitempty"`
	// Note states why it is not known whether there is a limit.
	Note string `json:"note,omitempty"`
}

// Machine is the memory of the host.
type Machine struct {
	Total     int64 `json:"total_bytes"`
	Available int64 `json:"available_bytes"` // without swapping
}
