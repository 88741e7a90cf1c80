package failure

// The kinds of what PyTorch's allocator and trainers state about requests that the driver
// refused, and after which a program can go on.
const (
	AttemptAllocate Kind = "attempt"         // a refused cudaMalloc; cached memory is freed, and it is tried again
	AttemptMap      Kind = "attempt-map"     // a refused page of an expandable segment
	AttemptRetries  Kind = "attempt-retries" // a count of such retries, or of flushed caches
	TorchBroken     Kind = "torch-broken"    // a segment lost a page earlier, so the allocator asserts
)

// familyAttempt is of warnings. Their wordings are of PyTorch 2.13 and later
// (CUDACachingAllocator.cpp), torchtitan's metrics.py and DeepSpeed's stage3.py.
var familyAttempt = &family{
	source: SourcePyTorch,
	keys:   []string{"failedwithoomondevice", "memoryallocationretries", "allocatorcacheflushes"},
	begin:  []string{"failedwithoomondevice", "memoryallocationretries", "allocatorcacheflushes"},
	lines:  1,
	wordings: []wording{
		{kind: AttemptMap, text: "mapping failed with OOM on device {device:int} while trying to map {request_bytes:int} bytes (free: {device_free_bytes:int}, total: {capacity_bytes:int})"},
		{kind: AttemptMap, text: "mapping failed with OOM on device {device:int} (free: {device_free_bytes:int} bytes"},
		{kind: AttemptMap, text: "mapping failed with OOM on device {device:int}"},
		{kind: AttemptAllocate, text: "allocation failed with OOM on device {device:int} while trying to allocate {request_bytes:int} bytes (free: {device_free_bytes:int}, total: {capacity_bytes:int})"},
		{kind: AttemptAllocate, text: "allocation failed with OOM on device {device:int} while trying to allocate {request_bytes:int} bytes"},
		{kind: AttemptAllocate, text: "failed with OOM on device {device:int}"},
		{kind: AttemptRetries, text: "{retries:int} CUDA memory allocation retries"},
		{kind: AttemptRetries, text: "{retries:int} pytorch allocator cache flushes since last step"},
	},
}

// familyBroken is of the allocator's assertion that a segment has a page which it lost when a
// mapping failed. It can be all that a text shows of that.
var familyBroken = &family{
	source: SourcePyTorch,
	keys:   []string{"handles_.at("},
	wordings: []wording{
		{kind: TorchBroken, text: "handles_.at(i) INTERNAL ASSERT FAILED"},
	},
}

// Attempt reports whether a failure is a refused request after which the program may go on.
func (f *Failure) Attempt() bool {
	return f.Kind == AttemptAllocate || f.Kind == AttemptMap || f.Kind == AttemptRetries
}

// StartUp is a line in which an engine or a trainer loads a model. It is a statement only where
// the text ends with it: see [Finder.Unfinished].
const StartUp Kind = "start-up"

// familyStartUp is of vLLM, SGLang, TGI and transformers.
var familyStartUp = &family{
	source: SourceProcess,
	weak:   true,
	keys: []string{
		"modelloadingtook", "loadingmodelweightstook", "loadingweightstook", "loadweightbegin", "loadweightend", "checkpointshards:", "startingtoloadmodel", "availableram:", "initmemorypoolbegin",
		"torch.compiletook", "compilingagraphforcompilerange", "dynamobytecodetransformtime", "compiledfunctionto", "capturecudagraphbegin", "capturingcudagraph",
	},
	lines:    1,
	wordings: []wording{{kind: StartUp, line: `.`}},
	facts: []string{
		"Model loading took {needed_bytes:gib}",
		"Available RAM: {available_bytes:gib}",
	},
}
