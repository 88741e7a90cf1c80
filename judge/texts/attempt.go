package texts

import (
	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/units"
)

// attemptKinds explain requests that the driver refused at first, and their traces.
var attemptKinds = map[failure.Kind]func(*view){
	failure.AttemptAllocate: (*view).attempt,
	failure.AttemptMap:      (*view).attempt,
	failure.AttemptRetries:  (*view).attempt,
	failure.TorchBroken:     (*view).broken,
	failure.StartUp:         (*view).unfinished,
}

// attempt judges a warning by what the text shows after it. PyTorch frees cached memory and tries
// again; if that fails too, an OutOfMemoryError follows, which is another statement.
func (v *view) attempt() {
	v.Severity, v.Basis = finding.Warning, "a warning, and the lines after it"
	v.figures.Outcome = v.text.outcome()
	v.Confidence = 0.5
	if v.states(failure.Request, failure.Free) && v.f.Figures[failure.Request] > v.f.Figures[failure.Free] {
		v.cause(shortage.TooBig)
	}
	refused := "the driver refused a request"
	if v.states(failure.Request, failure.Free) {
		refused = "the driver refused " + v.size(failure.Request) + " with " + v.size(failure.Free) + " free"
	}
	if v.f.Kind == failure.AttemptRetries {
		refused = v.count(failure.Retries) + " allocation retries"
	}
	switch v.figures.Outcome {
	case finding.Recovered:
		v.Confidence = 0.9
		v.title("not a failure: %s, and the program went on: the device is nearly full", refused)
		v.say("line %s shows progress after it", units.Count(v.text.Hints[failure.HintProgress]))
	case finding.Thrashing:
		v.Confidence = 0.9
		v.title("the device is full: the allocator flushes its cache and retries, and the program goes on slower: %s", refused)
		v.say("the text says this %s times; each retry waits for the device and returns cached memory to the driver", units.Count(int64(v.f.Count)))
	default:
		v.title("a failed allocation: %s; the text does not show whether the program recovered", refused)
		v.say("PyTorch frees its cache and tries again after this warning; had that failed, an OutOfMemoryError would follow")
		if crash := v.text.Hints[failure.HintCrash]; crash > v.f.Line {
			v.say("line %s shows an error that does not mention memory", units.Count(crash))
		}
	}
	v.do("leave room on the device: a smaller batch or KV cache, or activation checkpointing")
	v.addOtherHolders("look for other processes on the device")
	if v.figures.Outcome == finding.Uncertain {
		v.do("look at the end of the whole log, and in `dmesg`, if the process is gone")
	}
}

// broken is the assertion of an allocator whose segment lost a page.
func (v *view) broken() {
	v.Confidence = 0.5
	v.title("PyTorch's allocator is broken since a mapping failed: each later allocation of this process asserts")
	v.say("the assertion is a consequence: memory ran out at the driver, or the device was reset, before it")
	v.do("restart the process: it cannot recover")
	v.do("look for the first failure before this line: a mapping that failed, or a device that was not ready")
	v.set("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False", "without expandable segments, a refused request is an ordinary OutOfMemoryError")
	v.do("if memory ran out: a smaller or quantized model, or offloading")
}

// unfinished is a text that ends while a model is loaded or compiled, without an error: a process
// that the kernel kills writes nothing.
func (v *view) unfinished() {
	v.Kind, v.Evidence, v.Severity, v.Confidence, v.Basis = finding.Ended, nil, finding.Warning, 0.5, "the end of the text"
	v.title("the text ends during start-up, without an error")
	v.say("a killed program writes nothing: host memory may have run out, even for a compiler (nvcc, ptxas)")
	if v.states(failure.Available) {
		v.say("%s of host memory was available", v.size(failure.Available))
	}
	v.set("dmesg -T | grep -i -E 'oom|killed process'", "if the process is gone, look for the kernel's OOM killer (journalctl -k, if dmesg is empty)")
	v.do("if compilers were killed, let fewer of them run at once: MAX_JOBS=4")
	v.do("if it still runs: wait, and give strandline the whole log")
}

// outcome is what became of a program after the last request that the driver refused.
func (t *Statement) outcome() finding.Outcome {
	const minRelapses = 3
	last, progress, crash := t.Hints[failure.HintAttempt], t.Hints[failure.HintProgress], t.Hints[failure.HintCrash]
	switch {
	case crash > last:
		return finding.Uncertain
	case t.Relapses >= minRelapses || t.retried():
		return finding.Thrashing
	case progress > last:
		return finding.Recovered
	}
	return finding.Uncertain
}

// retried reports whether the program itself counts retries, as trainers do once a step.
func (t *Statement) retried() bool {
	for i := range t.Failures {
		if t.Failures[i].Kind == failure.AttemptRetries {
			return true
		}
	}
	return false
}

// quoted makes a warning of a failure that a page or source code quotes.
func (t *Statement) quoted(f *finding.Finding) {
	e, ok := f.Evidence.(*finding.OOMEvidence)
	if !ok || !t.Shape.Document() || f.Severity != finding.Problem {
		return
	}
	const maxSure = 0.3
	f.Severity, f.Confidence, e.Outcome = finding.Warning, min(f.Confidence, maxSure), finding.Uncertain
	f.Basis = "a page or source code that quotes the message"
	f.Detail = append(f.Detail, "nothing shows that it happened: this reads like a page or source code, not like a program's output")
}
