package export

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/google/pprof/profile"

	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/stack"
)

// PprofOfProfile writes what a file of another program holds, by stack, as a gzipped
// profile. In use and allocated are the same: such a file is of one moment.
func PprofOfProfile(w io.Writer, f *profiles.File) error {
	p := newProfiler(nil)
	p.out.Mapping[0].File = f.Name
	for i := range f.Uses {
		u := &f.Uses[i]
		bytes := max(0, u.Size) * u.Count
		sample := &profile.Sample{
			Value: []int64{allocObjects: u.Count, allocSpace: bytes, inuseObjects: u.Count, inuseSpace: bytes},
			Label: map[string][]string{"kind": {u.Kind}},
		}
		if u.Device != "" {
			sample.Label["device"] = []string{u.Device}
		}
		for _, frame := range usedFrames(u) {
			sample.Location = append(sample.Location, p.location(frame))
		}
		p.out.Sample = append(p.out.Sample, sample)
	}
	out := p.profile()
	out.Comments = []string{"memory that " + f.Format + " states, at one moment"}
	return out.Write(w)
}

// FoldedOfProfile writes what a file of another program holds as folded stacks, the
// most bytes first. The outermost frame names the device, if the file states it.
func FoldedOfProfile(w io.Writer, f *profiles.File) error {
	var lines folder
	for i := range f.Uses {
		u := &f.Uses[i]
		if u.Size <= 0 {
			continue // of an unknown size, as compiled programs on a TPU
		}
		prefix := ""
		if u.Device != "" {
			prefix = u.Device + ";"
		}
		lines.add(u.Size*u.Count, func() string { return prefix + fold(usedFrames(u)) })
	}
	return lines.write(w)
}

var profileHeader = []string{"device", "kind", "size", "count", "bytes", "file", "line", "function"}

// CSVOfProfile writes what a file of another program holds as a table of RFC 4180: a
// line for the pieces of one size that one stack made, with the stack's site (see
// [jax.Site]). A size that the file does not state is empty.
func CSVOfProfile(w io.Writer, f *profiles.File) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	out.Write(profileHeader)
	for i := range f.Uses {
		u := &f.Uses[i]
		size, bytes := "", ""
		if u.Size >= 0 {
			size, bytes = strconv.FormatInt(u.Size, 10), strconv.FormatInt(u.Size*u.Count, 10)
		}
		site := jax.Site(usedFrames(u))
		line := ""
		if site.Line > 0 {
			line = strconv.FormatInt(site.Line, 10)
		}
		if err := out.Write([]string{cell(u.Device), cell(u.Kind), size, strconv.FormatInt(u.Count, 10), bytes, cell(site.File), line, cell(site.Function)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// usedFrames are the frames of a use, one at least.
func usedFrames(u *profiles.Use) []stack.Frame {
	if len(u.Stack) == 0 {
		return []stack.Frame{{Function: unknown}}
	}
	return u.Stack
}
