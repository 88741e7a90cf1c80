package text

import (
	"bytes"
	"io"

	"strandline/internal/lazyregexp"
)

// servicePrefix is what Docker Compose writes before each line of a service: "trainer-1  | ".
var servicePrefix = lazyregexp.New(`^[A-Za-z0-9][\w.-]{0,62} {1,40}\| `)

// serviceIn is that prefix where all lines of a text have the same, by its beginning, and nil
// where they do not.
func serviceIn(head []byte) []byte {
	if bytes.IndexByte(head, '|') < 0 {
		return nil
	}
	shown, _ := io.ReadAll(unpainted(bytes.NewReader(head)))
	prefix := bytes.Clone(servicePrefix.Find(shown))
	if prefix == nil {
		return nil
	}
	const some = 2
	lines := 0
	for line := range bytes.Lines(shown) {
		if !bytes.HasSuffix(line, []byte("\n")) && lines > 0 {
			break // the rest of it is not in the head
		}
		if !bytes.HasPrefix(line, prefix) && !bytes.Equal(bytes.TrimRight(line, " \r\n"), bytes.TrimRight(prefix, " ")) {
			return nil
		}
		lines++
	}
	if lines < some {
		return nil
	}
	return prefix
}

// unprefixed takes a prefix out of the lines of a text.
type unprefixed struct {
	prefix []byte
	within bool // a line has begun
}

func (u *unprefixed) longest() int { return len(u.prefix) }

func (u *unprefixed) rewrite(p []byte, last bool) (kept, taken int) {
	bare := bytes.TrimRight(u.prefix, " ") // of an empty line
	for i := 0; i < len(p); {
		rest := p[i:]
		if u.within {
			n := bytes.IndexByte(rest, '\n') + 1
			if u.within = n == 0; u.within {
				n = len(rest)
			}
			kept, i = kept+copy(p[kept:], rest[:n]), i+n
			continue
		}
		if !last && len(rest) < len(u.prefix) && bytes.HasPrefix(u.prefix, rest) {
			return kept, i
		}
		switch {
		case bytes.HasPrefix(rest, u.prefix):
			i += len(u.prefix)
		case bytes.HasPrefix(rest, bare) && (len(rest) == len(bare) || rest[len(bare)] == '\n' || rest[len(bare)] == '\r'):
			i += len(bare)
		}
		u.within = true
	}
	return kept, len(p)
}
