package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"strandline/judge/gate"
	"strandline/run/check"
	"strandline/units"
)

// allowed is what a gate measures, and what it allows of it.
type allowed struct {
	unit         string // what growth is counted by
	byTime       bool   // by the second instead
	metric       string
	growth, peak []string
	limits       check.Limits
}

// flags adds the flags.
func (o *allowed) flags(f *pflag.FlagSet, unit string) {
	o.unit = unit
	f.StringVar(&o.metric, "metric", "both", "judge the memory of `METRIC`: host, device or both")
	f.StringArrayVar(&o.growth, "max-growth", nil, fmt.Sprintf("allow growth of `SIZE/%[1]s`, such as 64KiB/%[1]s or device=0/%[1]s (default: none)", unit))
	f.StringArrayVar(&o.peak, "max-peak", nil, "allow a peak of `SIZE` of all processes together, such as host=2GiB or device=70GiB, or 2GiB of each (default: any)")
}

// read reads the limits.
func (o *allowed) read() error {
	o.limits = check.Limits{}
	switch o.metric {
	case gate.Host, gate.Device:
		o.limits[o.metric] = gate.Limits{}
	case "both":
		o.limits[gate.Host], o.limits[gate.Device] = gate.Limits{}, gate.Limits{}
	default:
		return fmt.Errorf("--metric %s: want host, device or both", o.metric)
	}
	for _, text := range o.growth {
		if err := o.limit("max-growth", text, func(l *gate.Limits, n int64) { l.Growth = &n }); err != nil {
			return err
		}
	}
	for _, text := range o.peak {
		if err := o.limit("max-peak", text, func(l *gate.Limits, n int64) { l.Peak, l.Together = &n, !strings.Contains(text, "=") }); err != nil {
			return err
		}
	}
	return nil
}

// limit sets a limit of the metric that a text names, or of all that are judged.
func (o *allowed) limit(flag, text string, set func(*gate.Limits, int64)) error {
	metric, value, one := strings.Cut(text, "=")
	if !one {
		metric, value = "", text
	}
	if _, ok := o.limits[metric]; one && !ok {
		return fmt.Errorf("--%s %s: %s is not judged; want host= or device=, or a size alone", flag, text, metric)
	}
	if flag == "max-growth" {
		switch size, unit, _ := strings.Cut(value, "/"); {
		case unit == "" || unit == o.unit || o.byTime && (unit == "s" || unit == "second"):
			value = size
		case o.unit == gate.Step && (unit == "s" || unit == "second"):
			return fmt.Errorf("--max-growth %s: growth is counted by the step; --steps-from time counts it by the second", text)
		default:
			return fmt.Errorf("--max-growth %s: want SIZE/%s", text, o.unit)
		}
	}
	n, err := units.ParseBytes(value)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	for m, l := range o.limits {
		if !one || m == metric {
			set(&l, n)
			o.limits[m] = l
		}
	}
	return nil
}
