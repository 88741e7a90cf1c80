package cli

import (
	"regexp"
	"strings"
	"testing"
)

// TestBrief looks for the facts of each example (the verdict, the place, what to do, why)
// on the first screen, which is short.
func TestBrief(t *testing.T) {
	t.Chdir("../examples")
	for _, c := range []struct {
		args  string
		words int // at most
		facts []string
	}{
		{"image-leak", 100, []string{"LEAK  2 lines", "w02_image_leak.py:39 normalise", "205 MiB", "w02_image_leak.py:44 patches", "via :47", "via :51", "91%", "FIX   drop the holder", "WHY   grew in 2 of 2", "NEXT  strandline record -- python w02_image_leak.py"}},
		{"autograd-graph", 85, []string{"LEAK  the autograd graph", "300 tensors of 4 lines", "w04_graph_leak.py:30 forward", "1.54 MiB", "FIX   call .detach()", "WHY   grew"}},
		{"ranks", 110, []string{"LEAK  1 line", "rank2: w16_ranks.py:39 log", "FIX   drop the holder"}},
		{"cache", 31, []string{"OK    no leak in 6 files", "PEAK  83.4 MiB = ", "NEXT  strandline inspect"}},
		{"logits", 90, []string{"OK    no leak", "logits.py:44 loss_of", "1002 MiB", "6.68 GiB", "2 copies", "FIX   make the copy once", "PEAK  7.66 GiB = "}},
		{"graphs", 75, []string{"private pools", "3.52 GiB", "FIX   pool = torch.cuda.graph_pool_handle()", "WHY   4.56 GiB reserved = "}},
		{"out-of-memory", 120, []string{"OOM   fragmentation: 1.5 GiB requested at w06b_oom_fragmented.py:35", "2.73 GiB was free, largest piece 150 MiB", "FIX   export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "replayed: succeeds, 1.05 GiB to spare", "WHY   4 GiB = 0.88 in use + 2.64 free in PyTorch's cache, in pieces + 0.09 free on the device + 0.39", "--at 144"}},
		{"out-of-memory/job.log", 60, []string{"OOM   fragmentation: 1.5 GiB requested", "2.73 GiB was free, in pieces", "FIX   export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "WHY   4 GiB = 0.88 in use + 2.64 free in PyTorch's cache, in pieces"}},
		{"plan/server.log", 48, []string{"OOM   vLLM does not start", "7.83 GiB short", "8.29 GiB is held outside PyTorch", "FIX   nvidia-smi", "WHY   19.8 GiB needed = 6.6 weights + 8.3 outside PyTorch + 4.9 activations"}},
		{"peak", 55, []string{"UNKNOWN", "3 of either", "192 MiB", "NEXT  strandline record -- python w18_train.py"}},
		{"varied-lengths", 90, []string{"FRAGMENTATION", "3 GiB of the 4.75 GiB", "FIX   export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "2.29 GiB instead of 4.75 GiB", "WHY   4.75 GiB peak = 1.75 needed by active memory + 3.00 in free pieces"}},
		{"memory-tables", 59, []string{"LEAK  allocated memory: +391 MiB a table, now 6.2 GiB", "3.53 → 6.2 GiB", "FIX   record snapshots", "WHY", "NEXT  strandline record"}},
		{"series", 24, []string{"LEAK  engine_rss_mib: +1.8 MiB a minute, now 2.71 GiB (9", "2.34 → 2.71 GiB", "FIX   find the line: `strandline trace --pid PID`"}},
		{"change", 90, []string{"UNKNOWN  2 files from 2 runs", "train.py:29 loss_of", "FIX   compute the loss in chunks", "NEXT  strandline compare --runs"}},
	} {
		stdout, _, _ := run(append([]string{"diagnose"}, strings.Fields(c.args)...)...)
		for _, fact := range c.facts {
			if !strings.Contains(stdout, fact) {
				t.Errorf("%s: %q is missing in\n%s", c.args, fact, stdout)
			}
		}
		if n := len(strings.Fields(stdout)); n > c.words {
			t.Errorf("%s: %d words, more than %d:\n%s", c.args, n, c.words, stdout)
		}
		if n := numbersOf(stdout); n > maxNumbers {
			t.Errorf("%s: %d numbers in a finding, more than %d:\n%s", c.args, n, maxNumbers, stdout)
		}
		const maxLines = 25
		if n := strings.Count(stdout, "\n"); n > maxLines {
			t.Errorf("%s: %d lines", c.args, n)
		}
		long, _, _ := run(append([]string{"diagnose", "-v"}, strings.Fields(c.args)...)...)
		t.Logf("%s: %d words, %d with -v", c.args, len(strings.Fields(stdout)), len(strings.Fields(long)))
	}
}

// maxNumbers is how many numbers a finding has at most, without what is pasted or opened.
const maxNumbers = 8

var (
	named   = regexp.MustCompile("`[^`]*`|\\S*[A-Za-z_/]\\S*\\d\\S*|\\S*:\\d+\\b") // files, lines and identifiers
	aNumber = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
	nextOf  = regexp.MustCompile(`^ {0,2}\d* {1,3}\S`) // the row of another finding
)

// numbersOf is the largest count of numbers in a finding of a first screen: its title, its
// figures and why.
func numbersOf(screen string) (most int) {
	n, label := 0, ""
	count := func(text string) { n += len(aNumber.FindAllString(named.ReplaceAllString(text, ""), -1)) }
	for line := range strings.Lines(screen) {
		if word, _, _ := strings.Cut(line, " "); word != "" {
			label = word
		}
		switch {
		case label == "FIX" || label == "NEXT" || label == "MORE" || label == "SAME":
		case strings.HasPrefix(line, "   via "):
		case nextOf.MatchString(line) && !strings.HasPrefix(line, label):
			most, n = max(most, n), 0
			count(line[min(len(line), 3):]) // without its mark
		case label == "WHY": // that of the first finding, whose count is no lower
			why := len(aNumber.FindAllString(named.ReplaceAllString(line, ""), -1))
			most = max(most, why)
		default:
			count(line)
		}
	}
	return max(most, n)
}

// TestNumbersOf counts what is a number of a finding.
func TestNumbersOf(t *testing.T) {
	for screen, want := range map[string]int{
		"OOM   1.5 GiB requested at a1.py:35 f\n      2.73 GiB was free, largest piece 150 MiB\nFIX   export X=1\nNEXT  strandline inspect a --at 7\n": 3,
		"LEAK  2 lines, +61.3 MiB, now 218 MiB\n 1 a.py:39 f  1 → 2 → 3 MiB  48 kept  91% sure\n   via :47 g\n":                                        5,
		"OK    no leak in 6 files\nWHY   4 GiB = 0.88 a + 2.64 b\n":                                                                                    3,
	} {
		if got := numbersOf(screen); got != want {
			t.Errorf("%d numbers, want %d, in\n%s", got, want, screen)
		}
	}
}
