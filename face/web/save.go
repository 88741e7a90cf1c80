package web

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"strandline/face/api/page"
	"strandline/face/web/engine"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
)

// Save writes the page of an asker as one file that needs no server: with the answers to the
// questions that it will ask. All files must have been read.
//
// A session of snapshots can ask any number of questions, so some are left out, and the page
// states which: pictures finer than a few thousand columns, but for the neighborhood of the
// peak and of failed requests; what was live between the moments of the columns; differences
// and sums of arbitrary events. The page of a recording holds as many moments as one answer,
// that of a watch the courses of the weightiest subjects.
func Save(ctx context.Context, w io.Writer, a engine.Asker) error {
	s := saver{ctx: ctx, asker: a, index: map[string][3]int{}}
	var err error
	index := "index.html"
	switch a := a.(type) {
	case *engine.Engine:
		err = s.session(a)
	case *engine.Recording:
		index = "recording.html"
		err = s.keepAll("recording", "window")
	case *engine.Watch:
		index = "watch.html"
		err = s.watch(a)
	default:
		err = fmt.Errorf("a page of %T cannot be saved", a)
	}
	if err != nil {
		return err
	}
	return s.write(w, index)
}

// pageOf is the page of an asker as a file to save.
func pageOf(ctx context.Context, a engine.Asker) engine.Answer {
	var out bytes.Buffer
	if err := Save(ctx, &out, a); err != nil {
		body, _ := json.Marshal(page.Refusal{Error: "The page is not saved: " + err.Error()})
		return engine.Answer{Status: 409, Type: "application/json", Body: body}
	}
	return engine.Answer{Status: 200, Type: "text/html; charset=utf-8", Body: out.Bytes(), Name: "strandline.html"}
}

// keepAll keeps the answers to questions without parameters.
func (s *saver) keepAll(names ...string) error {
	for _, name := range names {
		if err := s.keep(name, nil); err != nil {
			return err
		}
	}
	return nil
}

// savedSubjects are the courses in a saved page, of the weightiest subjects.
const savedSubjects = 300

func (s *saver) watch(w *engine.Watch) error {
	if err := s.keep("watch", nil); err != nil {
		return err
	}
	for _, key := range w.Weightiest(savedSubjects) {
		if err := s.keep("levels", params{"s", key}); err != nil {
			return err
		}
	}
	return nil
}

// A saver collects answers. They are packed in parts, each of which is unpacked
// as a whole when the page first needs it.
type saver struct {
	ctx    context.Context
	asker  engine.Asker
	first  bytes.Buffer // part 0, which the page needs to begin with
	packed [][]byte     // the parts after it
	last   bytes.Buffer // the part after these
	later  bool         // whether answers go to the last part, not to the first
	packer *flate.Writer
	index  map[string][3]int // question: part, place in it, length

	leftOut int // devices without pictures
}

// begin makes the next answers go to a separate part.
func (s *saver) begin() {
	if s.last.Len() > 0 {
		s.packed = append(s.packed, s.pack(s.last.Bytes()))
		s.last.Reset()
	}
	s.later = true
}

// pack compresses a part.
func (s *saver) pack(data []byte) []byte {
	var out bytes.Buffer
	if s.packer == nil {
		s.packer, _ = flate.NewWriter(nil, flate.BestCompression) // fails for an unknown level alone
	}
	s.packer.Reset(&out)
	s.packer.Write(data) // to a buffer, which does not fail
	s.packer.Close()
	return bytes.Clone(out.Bytes())
}

// parts packs what is not yet packed, and returns all parts.
func (s *saver) parts() [][]byte {
	s.begin()
	return append([][]byte{s.pack(s.first.Bytes())}, s.packed...)
}

// params are a question's, as pairs of name and value.
type params []any

func (p params) values() url.Values {
	out := url.Values{}
	for i := 0; i < len(p); i += 2 {
		out.Set(p[i].(string), fmt.Sprint(p[i+1]))
	}
	return out
}

// question returns the name by which the page looks for an answer.
func question(name string, q url.Values) string {
	q.Del("y") // tiles are held for one scale,
	q.Del("limit")
	return name + "?" + q.Encode()
}

// put keeps an answer.
func (s *saver) put(question string, answer []byte) {
	part, number := &s.first, 0
	if s.later {
		part, number = &s.last, len(s.packed)+1
	}
	s.index[question] = [3]int{number, part.Len(), len(answer)}
	part.Write(answer)
}

// putDoc keeps a document as the answer to a question.
func (s *saver) putDoc(name string, of params, doc any) error {
	answer, err := json.Marshal(doc)
	if err == nil {
		s.put(question(name, of.values()), answer)
	}
	return err
}

// keep puts a question and keeps the answer.
func (s *saver) keep(name string, of params) error {
	q := of.values()
	a := s.asker.Ask(s.ctx, name, q)
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case a.Status != 200:
		return fmt.Errorf("%s?%s: %s", name, q.Encode(), a.Body)
	}
	s.put(question(name, q), a.Body)
	return nil
}

// session keeps what all files share, and then the files.
func (s *saver) session(e *engine.Engine) error {
	findings, err := e.Findings()
	if err != nil {
		return err
	}
	views := drawn(e.Views(), findings.Findings)
	doc := e.Session()
	s.leaveOut(&doc, views)
	doc.Version = 1 // progress is counted by the clock
	for i := range doc.Files {
		doc.Files[i].Blocks = "unknown"
	}
	doc.Skipped = []page.Skipped{}
	if err := s.putDoc("session", nil, doc); err != nil {
		return err
	}
	if err := s.putDoc("findings", nil, findings); err != nil {
		return err
	}
	for _, f := range findings.Findings {
		if path, line := engine.Evident(&f.Finding); line > 0 && f.Where == nil {
			_ = s.keep("lines", params{"path", path, "line", line}) // a text that is gone has none
		}
	}
	if doc.Job {
		if err := s.keep("job", nil); err != nil {
			return err
		}
	}
	if len(doc.Files) > 1 {
		if err := s.keepAll("compare", "wall"); err != nil {
			return err
		}
	}
	for i, v := range views {
		if i > 0 {
			s.begin()
		}
		share := (len(views) + 1) / 2 // more files may take more room, but not as much more
		if err := s.newDevice(v, share, findings.Findings).save(); err != nil {
			return err
		}
	}
	return nil
}

// maxDrawn is how many devices of files have pictures in a saved page, and maxPointed how
// many findings make sure of those that they point to.
const maxDrawn, maxPointed = 48, 12

// drawn are the devices that have pictures, in their order: those that the first findings
// point to, and those with the highest peaks.
func drawn(views []engine.View, all []page.Finding) []engine.View {
	if len(views) <= maxDrawn {
		return views
	}
	found := map[[2]int]bool{}
	for _, f := range all[:min(len(all), maxPointed)] {
		if w := f.Where; w != nil && w.D != nil {
			found[[2]int{w.F, *w.D}] = true
		}
	}
	rank := make([]int64, len(views))
	byRank := make([]int, len(views))
	for i, v := range views {
		if rank[i], byRank[i] = v.Peak(), i; found[[2]int{v.F, v.D}] {
			rank[i] = math.MaxInt64
		}
	}
	sorts.StableBy(byRank, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	kept := byRank[:maxDrawn]
	slices.Sort(kept)
	out := make([]engine.View, len(kept))
	for i, k := range kept {
		out[i] = views[k]
	}
	return out
}

// leaveOut leaves the devices out of a session that have no pictures, and notes how many.
func (s *saver) leaveOut(doc *page.Session, views []engine.View) {
	kept := map[[2]int]bool{}
	for _, v := range views {
		kept[[2]int{v.F, v.D}] = true
	}
	for i := range doc.Files {
		f := &doc.Files[i]
		all := len(f.Devices)
		f.Devices = slices.DeleteFunc(f.Devices, func(d int) bool { return !kept[[2]int{f.F, d}] })
		s.leftOut += all - len(f.Devices)
		switch {
		case all > 0 && len(f.Devices) == 0:
			f.State, f.Main = "judged", nil
		case f.Main != nil && !kept[[2]int{f.F, *f.Main}]:
			f.Main = &f.Devices[0]
		}
	}
}

// linked are the script and the styles of a page.
var linked = lazyregexp.New(`<script defer src="(.*)"></script>\n|<link rel="stylesheet" href="(.*)">`)

// write makes a page of the answers.
func (s *saver) write(w io.Writer, name string) error {
	script, styles := asset("saved.js"), ""
	page := linked.ReplaceAllStringFunc(asset(name), func(tag string) string {
		files := linked.FindStringSubmatch(tag)
		if files[1] != "" {
			script += asset(files[1])
			return ""
		}
		styles += " " + hashOf(asset(files[2]))
		return "<style>" + asset(files[2]) + "</style>"
	})
	policy := "default-src 'none'; script-src " + hashOf(script) + "; style-src" + styles + "; img-src blob: data:; base-uri 'none'; form-action 'none'"
	head, foot, ok := strings.Cut(document(page, "saved", policy, ""), "</body>")
	if !ok || styles == "" {
		return fmt.Errorf("%s is not as expected", name)
	}
	index, err := json.Marshal(s.index)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	if err := writePart(w, "index", s.pack(index)); err != nil {
		return err
	}
	for i, data := range s.parts() {
		if err := writePart(w, strconv.Itoa(i), data); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "<script>"+script+"</script>\n</body>"+foot)
	return err
}

// hashOf names an inline script or style to the policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// writePart writes packed data into the page.
func writePart(w io.Writer, name string, packed []byte) error {
	if _, err := fmt.Fprintf(w, `<script type="text/plain" id="saved-%s">`, name); err != nil {
		return err
	}
	text := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := text.Write(packed); err != nil {
		return err
	}
	if err := text.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</script>\n")
	return err
}
