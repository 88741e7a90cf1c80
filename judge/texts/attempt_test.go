package texts

import (
	"strings"
	"testing"

	"strandline/finding"
)

const refused = "[rank1]:[W812 16:00:28.643448608 CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 1 while trying to allocate 20971520 bytes (free: 15794176, total: 150111977472).\n"

// TestOutcome judges refused requests by what the text shows after them.
func TestOutcome(t *testing.T) {
	const step = "step: 4  loss: 7.86  memory: 176.47GiB(98.94%)\n"
	for _, c := range []struct {
		name, text string
		severity   finding.Severity
		outcome    finding.Outcome
	}{
		{"a lone warning", refused, finding.Warning, finding.Uncertain},
		{"a step after it", refused + step, finding.Warning, finding.Recovered},
		{"a request after it", refused + `INFO: 10.0.0.1:4242 - "POST /v1/completions HTTP/1.1" 200 OK` + "\n", finding.Warning, finding.Recovered},
		{"a warning a step", strings.Repeat(refused+step, 5), finding.Warning, finding.Thrashing},
		{"many at the start", strings.Repeat(refused, 500) + step, finding.Warning, finding.Recovered},
		{"a trainer's count", step + "WARNING - 6 CUDA memory allocation retries.\n" + step, finding.Warning, finding.Thrashing},
		{"another error", refused + step + "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device\n", finding.Warning, finding.Uncertain},
		{"the retry failed", refused + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 139.80 GiB of which 15.06 MiB is free. Of the allocated memory 130.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n", finding.Problem, finding.Died},
		{"a page of an expandable segment", "[W905 CUDACachingAllocator.cpp:528] expandable_segments: memory mapping failed with OOM on device 0 while trying to map 20971520 bytes (free: 5898240, total: 33670758400).\n", finding.Warning, finding.Uncertain},
	} {
		f := alone(t, c.text, Options{})
		if e := f.Evidence.(*finding.OOMEvidence); f.Severity != c.severity || e.Outcome != c.outcome {
			t.Errorf("%s: %v, %v: %s", c.name, f.Severity, e.Outcome, f.Title)
		}
	}
}

// TestQuotedMessages judges messages that pages and source code quote.
func TestQuotedMessages(t *testing.T) {
	const message = "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 49.34G of 32.00G hbm. Exceeded hbm capacity by 17.34G.\n"
	page := "# Error codes\n\nThe program needs more memory than the device has.\n\n```\n" + message + "```\n"
	source := "CASES = [\n    (RuntimeError(\n        \"" + strings.TrimSpace(message) + "\",\n    ), True),\n]\ndef test_detection(error):\n    assert is_oom(error)\n"
	for _, c := range []struct {
		name, text string
		severity   finding.Severity
	}{
		{"a page", page, finding.Warning},
		{"a test", source, finding.Warning},
		{"the output", message, finding.Problem},
		{"somebody's question", page + "\nI get this when I start my run. What can I do?\n", finding.Problem},
		{"a log in a report", page + "2026-11-28 10:00:00 ERROR worker ended\n", finding.Problem},
	} {
		if f := alone(t, c.text, Options{}); f.Severity != c.severity {
			t.Errorf("%s: %v: %s", c.name, f.Severity, f.Title)
		}
	}
}
