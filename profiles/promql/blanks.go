package promql

import "io"

// A squeezer reads JSON without the blanks between its parts, but for one: a decoder looks
// at all of them again for each packet that comes.
type squeezer struct {
	r              io.Reader
	quoted, escape bool
	blank          bool // the last byte was one
}

func (s *squeezer) Read(p []byte) (int, error) {
	for {
		n, err := s.r.Read(p)
		if n = s.squeeze(p[:n]); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// squeeze moves what stays to the front, and returns its length.
func (s *squeezer) squeeze(p []byte) (n int) {
	for _, c := range p {
		blank := !s.quoted && (c == ' ' || c == '\n' || c == '\t' || c == '\r')
		if blank && s.blank {
			continue
		}
		s.blank = blank
		switch {
		case s.escape:
			s.escape = false
		case s.quoted && c == '\\':
			s.escape = true
		case c == '"':
			s.quoted = !s.quoted
		}
		p[n] = c
		n++
	}
	return n
}
