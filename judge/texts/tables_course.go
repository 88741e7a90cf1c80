package texts

import (
	"math"

	"strandline/finding"
	"strandline/logs/table"
	"strandline/trend"
	"strandline/units"
)

// course judges a row as a level over time: by the times of the tables, otherwise by their
// number. It is nil if they are too few to judge.
func (s *tableSeries) course(row func(*table.Summary) *int64) *trend.Course {
	var times, levels []float64
	_, dated := s.Span()
	now := 0.0
	for i, m := range s.Kept {
		switch {
		case i == 0:
		case dated:
			d, _ := s.Kept[i-1].Stamp.To(m.Stamp)
			now += d.Seconds()
		default: // of many tables, some are kept, evenly spread
			now = float64(i) * float64(s.Count-1) / float64(len(s.Kept)-1)
		}
		level := math.NaN()
		if n := row(m.Summary); n != nil {
			level = float64(*n)
		}
		times, levels = append(times, now), append(levels, level)
	}
	c := trend.JudgeLevels(times, levels)
	if !dated {
		c.Unit = "table"
	}
	if c.Shape == trend.Unknown {
		return nil
	}
	return &c
}

// addCourse states where allocated memory is heading: at what level it stays, or how fast
// it grows and when the device is full.
func (s *tableSeries) addCourse(f *finding.Finding, e *finding.TableEvidence) {
	c := s.whole
	if c == nil {
		return
	}
	levels := c.Evidence("allocated", nil)
	e.Levels = levels
	switch {
	case c.Shape == trend.Plateau && f.Kind == finding.Growth:
		f.Title += ", and levels off at " + units.Bytes(int64(c.Level))
		f.Basis = c.Basis()
	case c.Shape != trend.Flat && f.Kind == finding.Growth:
		f.Detail = append(f.Detail, "allocated memory "+c.Words())
	case c.Leaks() && f.Kind == finding.Leak:
		f.Detail = append(f.Detail, "allocated memory "+c.Words())
		if s.most == nil {
			f.Detail = append(f.Detail, "--capacity SIZE tells when the device is full")
			return
		}
		of := c
		if r := s.course(reserved); r != nil && r.Leaks() { // the driver counts what is reserved
			of = r
		}
		left := of.Evidence("", s.most)
		levels.LimitBytes, levels.SecondsToLimit, levels.StepsToLimit = left.LimitBytes, left.SecondsToLimit, left.StepsToLimit
		f.Detail = append(f.Detail, of.Reaches(left, "the capacity of "+units.Bytes(*s.most)))
	}
}
