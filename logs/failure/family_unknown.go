package failure

import (
	"strings"

	"strandline/internal/lazyregexp"
)

// Unknown is a statement in words that are not known.
const Unknown Kind = "unknown"

// familyUnknown is of any program that reports in an error that memory ran out.
var familyUnknown = &family{
	source: SourceProcess,
	weak:   true,
	keys: []string{
		"outofmemory", "ranoutofmem", "notenoughmem", "notenoughdevicemem", "insufficientdevicemem", "insufficientmem", "insufficientgpumem", "insufficientvram", "notenoughvram", "notenoughgpu", "notenoughram",
		"outofvram", "outofvideomem", "memoryexhausted", "memoryallocationfail", "failedtoallocate", "couldnotallocate", "unabletoallocate", "enomem", "allocationfailed", "out_of_memory",
		"outofdevicememory", "outofhostmemory", "mallocfailed", "failedtoalloc", "can'tallocate", "cannotallocate", "couldn'tallocate", "unabletoalloc", "failedtoreserve",
		"badallocation", "maxallocsize", "maxbuffersize", "exceedsthemax", "exceedsmax", "exceededmax", "exceedsdevice", "maxsizeofmemory", "nomemoryleft", "nomorememory", "memoryisfull", "memorylimitexceeded", "exceededmemory",
		"exceedsmemory", "exceedsthememory", "exceedsavailable", "exceedstheavailable", "exceedingmemory", "cudaoom", "gpuoom", "oomerror", "gotoom", "gotanoom", "oomdetected", "oomduring",
		"failedtocudamalloc", "failedtohipmalloc", "outofgpuandshared",
		"存不足", "存溢出", "憶體不足", "忆体不足", "メモリ不足", "メモリー不足", "メモリが不足", "メモリーが不足", "メモリが足り", "메모리부족", "메모리가부족", "分配内存", "分配显存", "存分配失败",
	},
	lines:    1,
	harmless: lazyregexp.New(`(?i)this ?is ?not ?a ?failure|exceeds ?\d+% ?of|allocate ?write\+execute|soft ?limit|(?:warning|host_malloc): ?failed ?to ?allocate ?[\d.,]+ ?Mi?B ?of ?pinned|warning: ?failed ?to ?allocate|ggml_vulkan: ?failed ?to ?allocate ?pinned ?memory|OutOfMemoryError: ?out ?of ?resource|OutOfMemory \(no further information\)`),
	wordings: []wording{
		{kind: Unknown, line: `(?i)out ?of ?(?:device |host |gpu |video |system |gpu and shared host )?memory|ran out of (?:gpu |device |video |system |host )?mem|(?:not enough|insufficient) (?:gpu |video |device |system |free |host |cuda )?(?:v?ram\b|memory)|out of vram|memory exhausted|\bENOMEM\b|out_of_memory`},
		{kind: Unknown, line: `(?i)(?:memory|buffer|\balloc) allocation fail|\bm?alloc(?:ation)? (?:of .{0,40} )?failed|bad allocation|(?:failed|unable|could ?n.t|could not|can.?t|cannot) (?:to )?(?:\w*alloc\w*|reserve|map) .{0,60}(?:memory|bytes|[KMG]i?B\b|buffer|tensor|array)`},
		{kind: Unknown, line: `(?i)exceed\w* (?:the |its |a |its own )?(?:max\w* |device |allowed |available |total |gpu |host |system |memory ).{0,40}(?:memory|alloc|buffer size|limit)|memory limit (?:of .{0,30} )?(?:was |is |has been )?exceeded|no (?:more |free )?memory (?:is )?(?:left|available)|memory is full`},
		{kind: Unknown, line: `\b(?:CUDA|GPU) OOM\b|\bOOM ?[Ee]rror\b|[Gg]ot (?:an )?OOM|OOM (?:detected|during)`},
		{kind: Unknown, line: outInOtherWords},
	},
	read: func(e *excerpt, f *Failure) bool {
		f.interpret(e.stated, e.raw)
		if otherReason.MatchString(f.Quote) {
			return false
		}
		words := translated(f.Quote)
		if loud.MatchString(words) && !advice(words) && !listed(f.Quote) && !exceptIn.MatchString(f.Quote) {
			return true
		}
		f.Words["quiet"] = "it"
		return !advice(words)
	},
}

// otherReason is why the driver gave no memory though there was enough.
var otherReason = lazyregexp.New(`(?i)alloc\w*\b.{0,80}: (?:CUDA )?driver version is insufficient|alloc\w*\b.{0,80}: no CUDA-capable device|alloc\w*\b.{0,80}: (?:CUDA )?initialization error`)

// loud is how an error differs from a remark.
var loud = lazyregexp.New(`(?i)error|exceed|exception|fatal|failed|failure|abort|panic|critical|crash|\[E\]|^E\d{4} |\bin cu[A-Z]\w+\(|^System is out of`)

// advised is how a sentence begins or ends that advises against a failure and does
// not state one.
var advised = lazyregexp.New(`(?i)\b(?:if|when|in case|to (?:avoid|prevent|fix|reduce|handle)|avoid|prevent|may|might|perhaps|possibly|could (?:cause|lead|run)|can (?:cause|lead|run)|consider|risk|likely|unless|without running|recover|retry|retrying|fall(?:ing)? ?back|skip(?:ping|ped)?|not a failure|no longer|hints? (?:on|for|about)|how to|catch(?:es|ing)?|instead of|protect|guard|warning|attempting to (?:free|reclaim|evict)|ensure that)\b`)

// advice reports whether the sentence of a line that states that memory ran out is
// advice, or a remark on what may happen.
func advice(line string) bool {
	line = runOn.ReplaceAllString(line, "$1. $2")
	for _, sentence := range strings.FieldsFunc(line, func(r rune) bool { return r == ';' || r == '!' || r == '?' }) {
		for part := range strings.SplitSeq(sentence, ". ") {
			if about.MatchString(part) {
				return advised.MatchString(part)
			}
		}
	}
	return false
}

// runOn is the end of a sentence without a space.
var runOn = lazyregexp.New(`([a-z])\.([A-Z])`)

var about = lazyregexp.New(`(?i)memory|\bOOM|buffer|v?ram\b|allocat|ENOMEM`)
