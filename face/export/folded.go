package export

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// Folded writes what is live as folded stacks, the input of flame graphs: a
// line for each stack, its frames from the outermost to the innermost, then the
// requested bytes of the active blocks that it made. The most bytes come first.
// If the snapshot has several devices, the outermost frame names the device.
func Folded(w io.Writer, s *snapshot.Snapshot) error {
	var lines folder
	devices := s.Devices()
	for _, d := range devices {
		prefix := ""
		if len(devices) > 1 {
			prefix = snapshot.DeviceName(d.Index) + ";"
		}
		bytes := activeBytes(s, d)
		for _, k := range sorts.Collect(maps.Keys(bytes), func(a, b heldBy) int {
			return cmp.Or(cmp.Compare(a.stack, b.stack), cmp.Compare(a.missing, b.missing))
		}) {
			lines.add(bytes[k], func() string {
				if k.missing != "" {
					return prefix + frameFor(k.missing).Function
				}
				return prefix + fold(s.Stacks.Short(k.stack))
			})
		}
	}
	return lines.write(w)
}

// A folder sums bytes by folded stack. Stacks may be long and many, so their
// text is built only when it is written.
type folder struct {
	lines []foldedLine
	index map[[sha256.Size]byte]int // by what the text hashes to
}

type foldedLine struct {
	bytes int64
	begin string // of the text, by which lines of equal size are sorted
	text  func() string
}

func (f *folder) add(bytes int64, text func() string) {
	whole := text()
	sum := sha256.Sum256([]byte(whole))
	i, ok := f.index[sum]
	if !ok {
		if f.index == nil {
			f.index = map[[sha256.Size]byte]int{}
		}
		i = len(f.lines)
		f.index[sum] = i
		const begin = 200
		f.lines = append(f.lines, foldedLine{begin: strings.Clone(whole[:min(len(whole), begin)]), text: text})
	}
	f.lines[i].bytes = units.Sum(f.lines[i].bytes, bytes)
}

// write writes the lines, the most bytes first.
func (f *folder) write(w io.Writer) error {
	sorts.StableBy(f.lines, func(a, b foldedLine) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.begin, b.begin))
	})
	out := bufio.NewWriter(w)
	for _, l := range f.lines {
		if _, err := fmt.Fprintf(out, "%s %d\n", l.text(), l.bytes); err != nil {
			return err
		}
	}
	return out.Flush()
}

// heldBy is a stack, or why there is none.
type heldBy struct {
	stack   stack.ID
	missing timeline.Missing
}

// activeBytes are the requested bytes of a device's active blocks by stack.
func activeBytes(s *snapshot.Snapshot, d snapshot.Device) map[heldBy]int64 {
	out, why := map[heldBy]int64{}, missing(s, d)
	eachActive(s, d, func(_ *snapshot.Segment, b *snapshot.Block) {
		k := heldBy{b.Stack, why[b.Addr]}
		out[k] = units.Sum(out[k], b.Requested)
	})
	return out
}

// fold is a stack on one line, outermost frame first.
func fold(frames []stack.Frame) string {
	if len(frames) == 0 {
		return unknown
	}
	var out strings.Builder
	for i, f := range slices.Backward(frames) {
		out.WriteString(foldedFrame(f))
		if i > 0 {
			out.WriteByte(';')
		}
	}
	return out.String()
}

// foldedFrame is a frame as "function (file:line)", without what parts frames
// and lines.
func foldedFrame(f stack.Frame) string {
	text := short(frameName(f))
	if f.Function != "" && f.File != "" && f.File != "??" {
		text += " (" + short(valid(f.File))
		if f.Line > 0 {
			text += fmt.Sprintf(":%d", f.Line)
		}
		text += ")"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ','
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		}
		return r
	}, text)
}

// short is the beginning of a name that is longer than any that a flame graph
// shows.
func short(name string) string {
	const maxLength = 256
	if len(name) <= maxLength {
		return name
	}
	return strings.ToValidUTF8(name[:maxLength], "") + "…"
}
