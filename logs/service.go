package logs

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
	shown, _ := io.ReadAll(&unpainted{r: bytes.NewReader(head)})
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
	r      io.Reader
	prefix []byte
	within bool   // a line has begun
	held   []byte // what may be the prefix
	err    error
}

func (u *unprefixed) Read(p []byte) (int, error) {
	if len(p) <= len(u.prefix) {
		return 0, io.ErrShortBuffer
	}
	for {
		if u.err != nil && len(u.held) == 0 {
			return 0, u.err
		}
		n := copy(p, u.held)
		u.held = u.held[:0]
		if u.err == nil {
			var got int
			got, u.err = u.r.Read(p[n:])
			n += got
		}
		if kept := u.clean(p[:n]); kept > 0 {
			return kept, nil
		}
	}
}

// clean cleans text in its place and returns how much is left of it.
func (u *unprefixed) clean(p []byte) (kept int) {
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
		if u.err == nil && len(rest) < len(u.prefix) && bytes.HasPrefix(u.prefix, rest) {
			u.held = append(u.held, rest...)
			break
		}
		switch {
		case bytes.HasPrefix(rest, u.prefix):
			i += len(u.prefix)
		case bytes.HasPrefix(rest, bare) && (len(rest) == len(bare) || rest[len(bare)] == '\n' || rest[len(bare)] == '\r'):
			i += len(bare)
		}
		u.within = true
	}
	return kept
}
