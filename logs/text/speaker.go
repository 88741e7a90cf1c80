package text

import (
	"bytes"
	"strconv"
)

// A Speaker is who wrote a line of a job, as launchers put it before the line. Numbers are -1
// and words empty where the line does not say so.
type Speaker struct {
	// Rank is that of PyTorch's own prefix "[rank11]:", the innermost of several.
	Rank int
	// Tag is the number of a launcher's tag with a word before it, "[default3]:", or of an outer
	// "[rank3]:": the local rank for some launchers, the rank for others.
	Tag  int
	Word string // of the tag
	// Label is the number of a launcher's tag without a word: "137: " of srun, "[1,3]<stderr>:" of MPI.
	Label int
	Host  string // the pod, container or host
	Actor string // of Ray
	PID   int
	IP    string
}

// nobody is the speaker of a line without a prefix.
var nobody = Speaker{Rank: -1, Tag: -1, Label: -1}

// Outer is the speaker without PyTorch's own prefix.
func (s Speaker) Outer() Speaker {
	s.Rank = -1
	return s
}

// SpeakerOf reads what launchers wrote before a line, one around the other, and returns what
// is behind that. Times among it are part of neither; stamp is the first of them, with its end.
func SpeakerOf(line []byte) (s Speaker, rest, stamp []byte) {
	s, rest = nobody, line
	for range 6 {
		text := bytes.TrimLeft(rest, " \t")
		n := s.one(text)
		if n == 0 {
			if n = isoTime(text); n > 0 && stamp == nil {
				stamp = text[:n]
			}
		}
		if n == 0 {
			break
		}
		rest = text[n:]
	}
	return s, rest, stamp
}

// one reads one prefix and returns its length, 0 if there is none.
func (s *Speaker) one(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	switch c := text[0]; {
	case c == '[':
		return s.bracket(text)
	case c == '(':
		return s.actor(text)
	case Digit(c) && s.Label < 0:
		digits := len(Digits(text))
		if digits > 5 || !HasPrefix(text[digits:], ": ") && string(text[digits:]) != ":" {
			return s.named(text)
		}
		s.Label, _ = strconv.Atoi(string(text[:digits]))
		return digits + 1
	case Letter(c) && s.Host == "":
		return s.named(text)
	}
	return 0
}

const maxName63 = 63 // bytes of a name of a pod or a host

// named is the length of the name of a container, pod or host: "trainer-3  | ", "node7: ",
// "train-worker-0 pytorch ".
func (s *Speaker) named(text []byte) int {
	n, digits, dashes := 0, 0, 0
	for n < len(text) && n <= maxName63 {
		switch c := text[n]; {
		case Digit(c):
			digits++
		case c == '-':
			dashes++
		case c >= 'a' && c <= 'z' || c == '.' || c == '_':
		default:
			goto end
		}
		n++
	}
end:
	name, after := text[:n], text[n:]
	if n == 0 || digits == 0 || s.Host != "" || len(after) == 0 {
		return 0
	}
	blanks := Run(after, maxName63, func(c byte) bool { return c == ' ' })
	switch {
	case blanks > 0 && HasPrefix(after[blanks:], "| "):
		n += blanks + 2
	case HasPrefix(after, ": ") && !number(name):
		n += 2
	case blanks == 1 && dashes > 0:
		word := Run(after[1:], maxName63, func(c byte) bool { return c >= 'a' && c <= 'z' || c == '-' })
		if word == 0 || !HasPrefix(after[1+word:], " ") {
			return 0
		}
		if (dashes == 1 || !Digit(name[n-1])) && !prefixed(after[2+word:]) {
			return 0
		}
		n += word + 2
	default:
		return 0
	}
	if HasPrefix(name, "rank") && len(Digits(name[4:])) == len(name)-4 {
		s.Tag, _ = strconv.Atoi(string(name[4:]))
		s.Word = "rank"
		return n
	}
	s.Host = string(name)
	return n
}

// prefixed reports whether a text begins with a time, or with a tag that has a word.
func prefixed(text []byte) bool {
	s := nobody
	return isoTime(text) > 0 || HasPrefix(text, "[") && s.bracket(text) > 0 && (s.Rank >= 0 || s.Word != "")
}

// number reports whether a name is a number or a version.
func number(name []byte) bool {
	return len(bytes.Trim(name, "0123456789.-_")) == 0 && bytes.Count(name, []byte(".")) != 3
}

// bracket is the length of "[default3]:", "[pod/a-worker-0/pytorch]", "[1,3]<stderr>:", "[3]".
func (s *Speaker) bracket(text []byte) int {
	const maxLen = 160
	end := bytes.IndexByte(text[:min(len(text), maxLen)], ']')
	if end < 0 {
		return 0
	}
	inside, n := text[1:end], end+1
	if HasPrefix(inside, "pod/") {
		if parts := bytes.Split(inside, []byte("/")); len(parts) > 1 {
			s.Host = string(parts[1])
		}
		return n
	}
	if at := bytes.LastIndexByte(inside, ','); at > 0 && HasPrefix(text[n:], "<std") {
		of := bytes.IndexByte(text[n:], '>')
		rank := Digits(inside[at+1:])
		if of < 0 || len(rank) == 0 || len(rank) != len(inside)-at-1 {
			return 0
		}
		s.Label, _ = strconv.Atoi(string(rank))
		return n + of + 1 + Run(text[n+of+1:], 1, func(c byte) bool { return c == ':' })
	}
	digits := LastDigits(inside)
	if len(digits) == 0 || len(digits) > 5 {
		return 0
	}
	word := inside[:len(inside)-len(digits)]
	x, _ := strconv.Atoi(string(digits))
	colon := HasPrefix(text[n:], ":")
	switch {
	case len(word) == 0:
		if s.Label >= 0 || len(text) == n || colon && len(text) == n+1 {
			return 0 // of a table: "[0]:"
		}
		s.Label = x
	case !colon || !lower(word):
		return 0
	default:
		if string(word) == "rank" {
			if s.Rank >= 0 && s.Tag < 0 {
				s.Tag, s.Word = s.Rank, "rank"
			}
			s.Rank = x
		} else {
			s.Tag, s.Word = x, string(word)
		}
	}
	if colon {
		n++
	}
	return n
}

// lower reports whether a word is of small letters and underscores.
func lower(word []byte) bool {
	return Run(word, len(word), func(c byte) bool { return c >= 'a' && c <= 'z' || c == '_' }) == len(word)
}

// actor is the length of "(WorkerDict pid=77, ip=10.0.0.1)".
func (s *Speaker) actor(text []byte) int {
	n := parenthesised(text)
	if n == 0 || s.PID > 0 {
		return 0
	}
	inside := text[1 : n-1]
	name, _, _ := bytes.Cut(inside, []byte(" "))
	s.Actor = string(bytes.TrimRight(name, ","))
	if _, after, ok := bytes.Cut(inside, []byte("pid=")); ok {
		s.PID, _ = strconv.Atoi(string(Digits(after)))
	}
	if _, after, ok := bytes.Cut(inside, []byte("ip=")); ok {
		ip, _, _ := bytes.Cut(after, []byte(","))
		s.IP = string(ip)
	}
	return n
}

// isoTime is the length of a time such as Kubernetes and container runtimes put before a line:
// "2026-01-02T03:04:05.678901234Z stderr F ".
func isoTime(text []byte) int {
	const minLen = len("2026-01-02T03:04:05Z")
	if len(text) < minLen || !Digit(text[0]) || text[4] != '-' || text[10] != 'T' || text[13] != ':' {
		return 0
	}
	n := bytes.IndexByte(text, ' ')
	if n < 0 {
		n = len(text)
	}
	if n < minLen || n > 40 {
		return 0
	}
	for _, stream := range []string{" stderr F", " stdout F", " stderr P", " stdout P"} {
		if HasPrefix(text[n:], stream) {
			return n + len(stream)
		}
	}
	return n
}
