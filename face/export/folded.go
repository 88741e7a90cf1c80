package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"strandline/stack"
	"strandline/torch/snapshot"
)

// Folded writes what is in use as folded stacks, the input of flame graphs: a
// line for each stack, its frames from the outermost to the innermost, then the
// requested bytes of the active blocks that it made. The most bytes come first.
// If the snapshot has several devices, the outermost frame names the device.
func Folded(w io.Writer, s *snapshot.Snapshot) error {
	out := bufio.NewWriter(w)
	for _, l := range foldedLines(s) {
		fmt.Fprintf(out, "%s %d\n", l.stack, l.bytes)
	}
	return out.Flush()
}

type foldedLine struct {
	stack string
	bytes int64
}

func foldedLines(s *snapshot.Snapshot) []foldedLine {
	bytes := map[string]int64{}
	devices := s.Devices()
	for _, d := range devices {
		prefix := ""
		if len(devices) > 1 {
			prefix = fmt.Sprintf("device %d;", d.Index)
		}
		for id, n := range activeBytes(s, d) {
			bytes[prefix+fold(s.Stacks.Stack(id))] += n
		}
	}
	return sortedLines(bytes)
}

// sortedLines are the lines of sums by stack, the most bytes first.
func sortedLines(bytes map[string]int64) []foldedLine {
	out := make([]foldedLine, 0, len(bytes))
	for text, n := range bytes {
		out = append(out, foldedLine{text, n})
	}
	slices.SortFunc(out, func(a, b foldedLine) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.stack, b.stack))
	})
	return out
}

// activeBytes are the requested bytes of a device's active blocks by stack.
func activeBytes(s *snapshot.Snapshot, d snapshot.Device) map[stack.ID]int64 {
	out := map[stack.ID]int64{}
	eachActive(s, d, func(_ *snapshot.Segment, b *snapshot.Block) { out[b.Stack] += b.Requested })
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
	text := frameName(f)
	if f.Function != "" && f.File != "" && f.File != "??" {
		text += " (" + valid(f.File)
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
