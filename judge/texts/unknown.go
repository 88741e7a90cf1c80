package texts

import (
	"strings"

	"strandline/judge/shortage"
	"strandline/logs/failure"
)

// unknown is a failure whose wording is not known: what its words state is reported with less
// confidence.
func (v *view) unknown() {
	v.Confidence = 0.4
	v.Basis = "an error that says so, in unknown wording"
	unclear := v.f.Words["unclear"] != "" && len(v.f.Figures) > 0
	switch {
	case v.f.Host:
		v.unknownHost()
	case unclear && !v.hintOfDevice():
		v.figures.Of = "host"
		v.unknownHost()
		v.say("nothing in the text is of a GPU")
	case v.f.Source == failure.SourceProcess && len(v.f.Figures) == 0:
		v.title("memory ran out, according to an error in unknown wording")
		v.say("the text does not say, in a form that is understood, which memory it was and how much was requested")
		v.do("include the lines around it, and those with figures. For a program that still runs, `strandline trace --pid PID` watches its host memory and `strandline trace --gpu --pid PID` its GPU memory")
	default:
		v.unknownDevice()
	}
	v.do("for PyTorch, a snapshot at the failure shows every holder")
}

// hintOfDevice reports whether the text is of a program that uses a GPU.
func (v *view) hintOfDevice() bool {
	for h := range v.text.Hints {
		switch h {
		case failure.HintWindows, failure.HintWSL, failure.HintUnix, failure.HintEval, failure.HintContainer, failure.HintShutdown, failure.HintPinned, failure.HintProgress, failure.HintCrash:
		default:
			return true
		}
	}
	return false
}

// unknownHost is a failure of the host's memory.
func (v *view) unknownHost() {
	v.title("the host's memory ran out, according to an error in unknown wording")
	switch {
	case v.blameLimit():
		v.title("the host's memory ran out, according to an error in unknown wording: %s was requested, and %s is allowed", v.size(failure.Request), v.size(failure.Limit))
	case v.states(failure.Request):
		v.cause(shortage.TooBig)
		v.title("the host's memory ran out, according to an error in unknown wording: %s was requested", v.size(failure.Request))
	}
	if v.f.Host {
		v.say("the refused memory is the host's, not the GPU's")
	}
	v.do("make the one allocation smaller: a shorter input, a smaller batch or chunks, a smaller dtype")
	v.lessHost()
	v.traceHost()
}

// unknownDevice is a failure of a device's memory.
func (v *view) unknownDevice() {
	v.title("memory ran out on the device, according to an error in unknown wording")
	switch {
	case v.blameLimit():
		v.title("memory ran out on the device, according to an error in unknown wording: %s was requested, and %s is allowed", v.size(failure.Request), v.size(failure.Limit))
	case v.states(failure.Request, failure.Free):
		v.title("memory ran out on the device, according to an error in unknown wording: %s was requested, and %s was free", v.size(failure.Request), v.size(failure.Free))
		if v.f.Figures[failure.Request] > v.f.Figures[failure.Free] {
			v.cause(shortage.TooBig)
		}
	case v.states(failure.Request, failure.Capacity) && v.f.Figures[failure.Request] > v.f.Figures[failure.Capacity]-v.f.Figures[failure.Active]:
		v.cause(shortage.TooBig)
		v.title("memory ran out on the device, according to an error in unknown wording: %s was requested, of %s in total", v.size(failure.Request), v.size(failure.Capacity))
	case v.states(failure.Request, failure.Capacity):
		v.title("an error in unknown wording: memory ran out on a device of %s: %s was requested", v.size(failure.Capacity), v.size(failure.Request))
	case v.states(failure.Request):
		v.title("memory ran out on the device, according to an error in unknown wording: %s was requested", v.size(failure.Request))
	}
	if total := v.f.Words["total"]; total != "" {
		v.say("a line before it gives the device's size: %s", total)
	}
	v.engineOptions()
	v.do("allocate less at once: a smaller batch, input or model, or fewer bits; keep less on the device")
	v.addOtherHolders("look for other processes on the device")
	v.do("include the lines around the error, and those with figures, if there are more")
}

// blameLimit reports whether a stated limit did not let a request through, and takes that for
// the cause.
func (v *view) blameLimit() bool {
	if v.states(failure.Limit) && !v.states(failure.Request) && strings.Contains(strings.ToLower(v.f.Quote), "exceed") {
		v.cause(shortage.Limit) // by a request too large to be one
		return false
	}
	if !v.states(failure.Request, failure.Limit) || v.f.Figures[failure.Request]+v.f.Figures[failure.Active] <= v.f.Figures[failure.Limit] {
		return false
	}
	v.cause(shortage.Limit)
	return true
}
