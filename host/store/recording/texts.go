package recording

import "strings"

// maxText is how many bytes of a text of a judgment are kept: no program has longer commands, and
// no finding says as much.
const maxText = 64 << 10

// clip keeps the beginnings of texts.
func clip(texts ...*string) {
	for _, t := range texts {
		if len(*t) > maxText {
			*t = strings.ToValidUTF8((*t)[:maxText], "") + "…"
		}
	}
}

// clip keeps the beginnings of the texts that are printed.
func (d *Document) clip() {
	for i := range d.Processes {
		p := &d.Processes[i]
		clip(&p.Name, &p.Role, &p.Command)
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		clip(&f.Title, &f.Basis, &f.Process, (*string)(&f.Kind), (*string)(&f.Severity))
		for k := range f.Detail {
			clip(&f.Detail[k])
		}
		for k := range f.Remedies {
			r := &f.Remedies[k]
			clip(&r.Kind, &r.Text, &r.Detail, &r.Setting)
		}
	}
}
