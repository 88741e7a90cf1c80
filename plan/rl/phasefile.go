package rl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"strandline/plan"
	"strandline/units"
)

// phaseFile is [Phases] as a person writes it.
type phaseFile struct {
	GPU        string          `yaml:"gpu"`
	Components []componentLine `yaml:"components"`
	Fraction   *fractionLine   `yaml:"fraction,omitempty"`
	Ways       []sharing       `yaml:"ways"`
}

type componentLine struct {
	Name string `yaml:"name"`
	Size string `yaml:"size"`
}

// fractionLine states what a memory fraction sizes.
type fractionLine struct {
	Sizes  string `yaml:"sizes"`
	Of     string `yaml:"of"`
	Less   string `yaml:"less"`
	Needed string `yaml:"needed"`
}

const phasesHead = `# The phases of a step: edit them, and give the file to "strandline plan rl --phases".
# A size is one ("14.2GiB") or a range ("0.5GiB..2GiB"). The memory fraction sizes
# one component: fraction × of − less.
`

// exact prints a size so that it reads back as the same.
func exact(n int64) string { return strconv.FormatInt(n>>20, 10) + "MiB" }

// YAML writes the phases as a file to edit; sizes are whole MiB.
func (p *Phases) YAML(w io.Writer) error {
	f := phaseFile{GPU: exact(p.Total)}
	for _, w := range p.sharings { // of what takes nothing the file does not speak
		one := sharing{Name: w.Name}
		for _, ph := range w.Phases {
			holds := slices.DeleteFunc(slices.Clone(ph.Holds), func(name string) bool { return p.size(name).High == 0 })
			one.Phases = append(one.Phases, stepPhase{ph.Name, holds, ph.Restarts})
		}
		f.Ways = append(f.Ways, one)
	}
	for _, c := range p.Components {
		size := exact(c.Size.Low)
		if c.Size.High>>20 != c.Size.Low>>20 {
			size += ".." + exact(c.Size.High)
		}
		f.Components = append(f.Components, componentLine{c.Name, size})
	}
	if p.Pool != "" {
		f.Fraction = &fractionLine{p.Pool, exact(p.free), exact(p.fixed), exact(p.need)}
	}
	if _, err := io.WriteString(w, phasesHead); err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(f); err != nil {
		return err
	}
	return enc.Close()
}

const maxPhaseFile = 1 << 20

// ReadPhases reads such a file.
func ReadPhases(r io.Reader) (*Phases, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPhaseFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPhaseFile {
		return nil, fmt.Errorf("more than %d bytes are not a list of phases", maxPhaseFile)
	}
	var f phaseFile
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty")
		}
		var all *yaml.TypeError
		if errors.As(err, &all) { // one to a line
			return nil, errors.New(all.Errors[0])
		}
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one document")
	}
	p := &Phases{sharings: f.Ways}
	if p.Total, err = sizeOf("gpu", f.GPU); err != nil {
		return nil, err
	}
	if p.Total == 0 {
		return nil, errors.New("gpu: it has no memory")
	}
	known := map[string]bool{}
	for _, c := range f.Components {
		if c.Name == "" || known[c.Name] {
			return nil, fmt.Errorf("components: the name %q is missing or twice there", c.Name)
		}
		known[c.Name] = true
		low, high, isRange := strings.Cut(c.Size, "..")
		if !isRange {
			high = low
		}
		one := plan.Component{Name: c.Name, Source: "given"}
		if one.Size.Low, err = sizeOf(c.Name, low); err == nil {
			one.Size.High, err = sizeOf(c.Name, high)
		}
		if err != nil {
			return nil, err
		}
		if one.Size.High < one.Size.Low {
			return nil, fmt.Errorf("%s: the range %q ends before it begins", c.Name, c.Size)
		}
		p.Components = append(p.Components, one)
	}
	if len(p.sharings) == 0 {
		return nil, errors.New("ways: there are none")
	}
	named := map[string]bool{}
	for _, w := range p.sharings {
		if named[w.Name] {
			return nil, fmt.Errorf("way %q is twice there", w.Name)
		}
		named[w.Name] = true
		if err := w.check(known); err != nil {
			return nil, err
		}
	}
	return p, p.readFraction(f.Fraction, known)
}

// check refuses a way that holds an unknown component, or holds one twice.
func (w *sharing) check(known map[string]bool) error {
	if len(w.Phases) == 0 {
		return fmt.Errorf("way %q has no phases", w.Name)
	}
	for _, ph := range w.Phases {
		for i, name := range ph.Holds {
			if !known[name] {
				return fmt.Errorf("phase %q of %q holds %q, which is not a component", ph.Name, w.Name, name)
			}
			if slices.Contains(ph.Holds[:i], name) {
				return fmt.Errorf("phase %q of %q holds %q twice", ph.Name, w.Name, name)
			}
		}
	}
	return nil
}

func (p *Phases) readFraction(f *fractionLine, known map[string]bool) (err error) {
	if f == nil {
		return nil
	}
	if !known[f.Sizes] {
		return fmt.Errorf("fraction: the component %q is not there", f.Sizes)
	}
	p.Pool = f.Sizes
	if p.free, err = sizeOf("fraction: of", f.Of); err == nil {
		p.fixed, err = sizeOf("fraction: less", f.Less)
	}
	if err == nil && f.Needed != "" {
		p.need, err = sizeOf("fraction: needed", f.Needed)
	}
	return err
}

// sizeOf reads a size, of at most 2^50 bytes so that sums hold.
func sizeOf(name, text string) (int64, error) {
	n, err := units.ParseBytes(strings.TrimSpace(text))
	if err != nil || n < 0 || n > 1<<50 {
		return 0, fmt.Errorf("%s: %q is not a size", name, text)
	}
	return n, nil
}
