package printed

import (
	"math"

	"strandline/internal/lazyregexp"
)

// tegra is the lines of tegrastats on a Jetson, whose GPU has no memory of its own:
// "RAM 2345/7620MB (lfb 1x4MB) SWAP 12/3810MB".
type tegra struct{ *levels }

func newTegra(l *levels) reader { return &tegra{l} }

var tegraSizes = lazyregexp.New(`\b(RAM|SWAP|IRAM) (\d+)/(\d+)MB`)

func (t *tegra) line(line []byte) {
	text := string(line)
	sizes := tegraSizes.FindAllStringSubmatch(text, 3)
	if sizes == nil {
		return
	}
	at, ok := t.clock.Read(text)
	if !ok {
		at = math.NaN()
	}
	t.begin(at)
	for _, m := range sizes {
		t.add("", m[1], max(mebibytes(m[2]), zero), mebibytes(m[3]))
	}
}

func (t *tegra) end() error { return nil }
