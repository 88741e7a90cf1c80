package engine

import (
	"bytes"
	"slices"

	"strandline/face/api/page"
	"strandline/finding"
	"strandline/stack"
)

// around is how many lines are shown before and after one.
const around = 3

// lines are those around a line of a text among the files, or of the source code that a recording
// names. There are none where they are not at hand.
func (q *question) lines() (any, error) {
	j, err := q.e.judged()
	if err != nil {
		return nil, err
	}
	q.e.mu.Lock()
	files := slices.Clone(q.e.files)
	q.e.mu.Unlock()
	path := q.text("path", "")
	for _, f := range files {
		if f.Path == path && f.Lines != nil && f.state == judged {
			return q.around(func(from, to int) ([]string, error) { return f.Lines(q.ctx, from, to) })
		}
	}
	return q.codeLines(q.e.code, namedByFinding(j.answer.Findings, path) || namedByStack(files, path))
}

// codeLines are those of source code that is at hand, if a recording names it.
func (q *question) codeLines(code func(path string) ([]byte, error), named bool) (any, error) {
	path := q.text("path", "")
	return q.around(func(from, to int) (out []string, err error) {
		if code == nil || !named {
			return nil, nil
		}
		text, err := code(path)
		if err != nil {
			return nil, err
		}
		all := bytes.Split(text, []byte("\n"))
		for _, l := range all[min(from-1, len(all)):min(to, len(all))] {
			out = append(out, cut(string(bytes.ToValidUTF8(bytes.TrimSuffix(l, []byte("\r")), []byte("?")))))
		}
		return out, nil
	})
}

// around answers with the lines around the one that is asked for. Those that cannot be read are not
// at hand.
func (q *question) around(read func(from, to int) ([]string, error)) (any, error) {
	line, err := q.number("line", missing, 1, 1<<31)
	if err != nil {
		return nil, err
	}
	doc := page.Lines{From: max(1, int(line)-around), Lines: []string{}}
	lines, err := read(doc.From, int(line)+around)
	if err == nil && len(lines) > int(line)-doc.From { // else it is another file
		doc.Lines = lines
	}
	return doc, nil
}

// Evident is the line of a text that shows a finding, 0 if there is none.
func Evident(f *finding.Finding) (path string, line int64) {
	switch e := f.Evidence.(type) {
	case *finding.OOMEvidence:
		return e.File, e.Line
	case *finding.TableEvidence:
		return e.File, e.Line
	}
	return "", 0
}

func namedByFinding(all []finding.Finding, path string) bool {
	return slices.ContainsFunc(all, func(f finding.Finding) bool {
		return f.Site != nil && f.Site.File == path || slices.ContainsFunc(f.Stack, func(x finding.Frame) bool { return x.File == path })
	})
}

func namedByStack(files []*file, path string) bool {
	for _, f := range files {
		if f.content == nil {
			continue
		}
		t := f.snap.Stacks
		for id := range t.FrameCount() {
			if t.At(stack.FrameID(id)).File == path {
				return true
			}
		}
	}
	return false
}
