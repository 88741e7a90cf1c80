package failure

import "strings"

// Faults are the words, in small letters, of faults that end a process and are none of memory. A
// text of one process is refused by them, and logs/ranks tells by them who of a job failed.
var Faults = map[Hint][]string{
	HintECC:     {"uncorrectable ecc", "double bit error", "uncorrectable double bit"},
	HintTimeout: {"collective operation timeout"},
	HintIllegal: {"illegal memory access", "cuda error: misaligned address"},
}

// packedFault are the words of a fault without white space.
func packedFault(h Hint) (words []string) {
	for _, w := range Faults[h] {
		words = append(words, strings.ReplaceAll(w, " ", ""))
	}
	return words
}
