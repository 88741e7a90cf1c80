package failure

import "strandline/plan/engine"

// A Failure is a statement that memory ran out, by any program other than
// PyTorch's allocators, whose messages are [OOM]s.
type Failure struct {
	Line    int64 // on which it begins, from 1
	Kind    Kind
	Source  Source
	Host    bool               // of the host's memory, not of a device's
	Weak    bool               // it can be the consequence of another failure
	Figures map[Figure]float64 // what is stated, in bytes unless the figure states otherwise
	Words   map[string]string  // names that are stated, such as of the process that was killed
	Quote   string             // its line, as in the text
	Count   int                // how often the text states it
}

// A Kind identifies what is stated, and the wording.
type Kind string

// A Source is the program that states that memory ran out.
type Source string

// The sources other than those whose messages are [OOM]s.
const (
	SourcePyTorch    Source = "pytorch"
	SourceDriver     Source = "cuda-driver"
	SourceNCCL       Source = "nccl"
	SourceVLLM       Source = engine.VLLM
	SourceSGLang     Source = engine.SGLang
	SourceTGI        Source = engine.TGI
	SourceTensorRT   Source = "tensorrt"
	SourceONNX       Source = "onnxruntime"
	SourceXLA        Source = "xla"
	SourceTensorFlow Source = "tensorflow"
	SourceLlama      Source = engine.LlamaCPP
	SourceOllama     Source = engine.Ollama
	SourceMLX        Source = "mlx"
	SourceDirectML   Source = "directml"
	SourceCPU        Source = "cpu-allocator"
	SourceWindows    Source = "windows"
	SourceKernel     Source = "kernel"
	SourceCgroup     Source = "cgroup"
	SourceKubernetes Source = "kubernetes"
	SourceSlurm      Source = "slurm"
	SourceRay        Source = "ray"
	SourceProcess    Source = "process"
)

// A Figure names a number that a text states.
type Figure string

// The figures, in bytes unless stated otherwise.
const (
	Request   Figure = "request_bytes"     // asked for at once
	Capacity  Figure = "capacity_bytes"    // of the device or the host
	Free      Figure = "device_free_bytes" // of the device
	Reserved  Figure = "reserved_bytes"    // by the allocator
	Active    Figure = "active_bytes"      // of that, in use
	InProcess Figure = "process_bytes"     // held by the process in all
	Limit     Figure = "limit_bytes"
	RSS       Figure = "rss_bytes"         // of the process that was killed
	Needed    Figure = "needed_bytes"      // in all
	Available Figure = "available_bytes"   // for what is needed
	MaxLength Figure = "max_length_tokens" // the longest request that fits, in tokens
	Length    Figure = "length_tokens"     // the one that does not
	Fraction  Figure = "fraction"          // of the device, as it was set
	Least     Figure = "least_fraction"    // that would suffice
	Largest   Figure = "largest_free_bytes"
	Tokens    Figure = "tokens"
	Lost      Figure = "lost_slots" // of a pool, neither free nor in use
	Slots     Figure = "slots"      // of that pool
	Retries   Figure = "retries"    // a number, of requests that were refused at first
)

// Figure is a figure of a failure, rounded; false if the text does not state it.
func (f *Failure) Figure(name Figure) (int64, bool) {
	x, ok := f.Figures[name]
	return int64(x), ok
}
