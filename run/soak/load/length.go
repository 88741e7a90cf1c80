package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A Length is a distribution of lengths, in tokens.
type Length struct {
	Low, High int
	// Spread is the standard deviation of the logarithm of a log-normal distribution
	// with the median Low, whose values above High are cut off; 0 for lengths that are
	// equally likely from Low to High.
	Spread float64
}

// longest is the largest length, in tokens.
const longest = 1 << 20

// ParseLength reads a length such as 200, 50-400 (equally likely) or ~200 (log-normal with
// the median 200, as the prompts of people are).
func ParseLength(text string) (l Length, err error) {
	wrong := fmt.Errorf("%q: want a number of tokens such as 200, a range such as 50-400, or ~200 for a log-normal median", text)
	if median, ok := strings.CutPrefix(text, "~"); ok {
		const natural, maxFactor = 0.8, 8
		n, err := strconv.Atoi(median)
		if err != nil || n < 1 || n > longest/maxFactor {
			return l, wrong
		}
		return Length{n, maxFactor * n, natural}, nil
	}
	low, high, ok := strings.Cut(text, "-")
	if !ok {
		high = low
	}
	if l.Low, err = strconv.Atoi(low); err != nil || l.Low < 1 {
		return l, wrong
	}
	if l.High, err = strconv.Atoi(high); err != nil || l.High < l.Low || l.High > longest {
		return l, wrong
	}
	return l, nil
}

// draw returns a length.
func (l Length) draw(r *rand.Rand) int {
	if l.Spread > 0 {
		n := float64(l.Low) * math.Exp(l.Spread*r.NormFloat64())
		return min(max(int(n), 1), l.High)
	}
	return max(l.Low, 1) + r.IntN(max(l.High-l.Low, 0)+1)
}

// source returns the random numbers of a conversation, by its wave and its index.
func source(seed uint64, wave, index int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(int64(wave))<<32^uint64(index)))
}

// vocabulary are words that are one token for most tokenizers.
var vocabulary = strings.Fields(`the of and to in is for that with on as are was this by from at have not be but they which one all you had there
were can has more if no out so what up said about than into them other some could time these two may then do first any my now such like our over
man me even most made after also did many before must through back years where much your way well down should because each just those people`)

// words appends n random words to a buffer.
func words(to []byte, r *rand.Rand, n int) []byte {
	for i := range n {
		if i > 0 {
			to = append(to, ' ')
		}
		to = append(to, vocabulary[r.IntN(len(vocabulary))]...)
	}
	return to
}
