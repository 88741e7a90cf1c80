package logs

import (
	"regexp"
	"strings"
)

// Unknown is a statement in words that are not known.
const Unknown Kind = "unknown"

// familyUnknown is of any program that says in an error that memory ran out.
var familyUnknown = &family{
	source: SourceProcess,
	weak:   true,
	keys: []string{
		"outofmemory", "ranoutofmem", "notenoughmem", "notenoughdevicemem", "insufficientdevicemem", "insufficientmem", "insufficientgpumem", "insufficientvram", "notenoughvram", "notenoughgpu", "notenoughram",
		"outofvram", "memoryexhausted", "memoryallocationfail", "failedtoallocate", "couldnotallocate", "unabletoallocate", "enomem", "allocationfailed", "out_of_memory",
		"outofdevicememory", "outofhostmemory",
	},
	lines:    1,
	harmless: regexp.MustCompile(`(?i)this is not a failure|warning: failed to allocate`),
	wordings: []wording{
		{kind: Unknown, line: `(?i)out ?of ?(?:device |host |gpu |video |system )?memory|ran out of (?:gpu |device |video |system |host )?mem|(?:not enough|insufficient) (?:gpu |video |device |system |free |host |cuda )?(?:v?ram\b|memory)|out of vram|memory exhausted|memory allocation fail|(?:failed|unable|could not|cannot) (?:to )?allocate .{0,60}(?:memory|bytes|[KMG]i?B\b)|\bENOMEM\b|out_of_memory`},
	},
	read: func(_ *excerpt, f *Failure) bool {
		if loud.MatchString(f.Quote) && !advice(f.Quote) && !inSource.MatchString(f.Quote) && !exceptIn.MatchString(f.Quote) {
			return true
		}
		f.Words["quiet"] = "it"
		return !advice(f.Quote)
	},
}

// loud is how an error differs from a remark.
var loud = regexp.MustCompile(`(?i)error|exception|fatal|failed|failure|abort|panic|critical|crash|\[E\]|^E\d{4} `)

// advised is how a sentence begins or ends that states no failure, but what to do
// against one.
var advised = regexp.MustCompile(`(?i)\b(?:if|when|in case|to (?:avoid|prevent|fix|reduce|handle)|avoid|prevent|may|might|could (?:cause|lead|run)|can (?:cause|lead|run)|consider|risk|likely|unless|without running|recover|retry|retrying|fall(?:ing)? ?back|skip(?:ping|ped)?|not a failure|no longer|instead of|protect|guard|warning)\b`)

// advice reports whether the sentence of a line that says that memory ran out is
// advice, or a remark on what may happen.
func advice(line string) bool {
	for _, sentence := range strings.FieldsFunc(line, func(r rune) bool { return r == ';' || r == '!' || r == '?' }) {
		for part := range strings.SplitSeq(sentence, ". ") {
			if about.MatchString(part) {
				return advised.MatchString(part)
			}
		}
	}
	return false
}

var about = regexp.MustCompile(`(?i)memory|v?ram\b|allocat|ENOMEM`)
