package recording

import "strandline/host/store/journal"

// clip keeps the beginnings of the texts that are printed.
func (d *Document) clip() {
	for i := range d.Processes {
		p := &d.Processes[i]
		journal.Clip(&p.Name, &p.Role, &p.Command)
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		journal.Clip(&f.Title, &f.Basis, &f.Process, (*string)(&f.Kind), (*string)(&f.Severity))
		for k := range f.Detail {
			journal.Clip(&f.Detail[k])
		}
		for k := range f.Remedies {
			r := &f.Remedies[k]
			journal.Clip(&r.Kind, &r.Text, &r.Detail, &r.Setting)
		}
	}
}
