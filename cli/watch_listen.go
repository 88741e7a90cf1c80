package cli

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"strandline/face/metrics"
	"strandline/host/sampling/sample"
	"strandline/judge/samples"
)

// An exporter serves a watch as metrics. A nil one serves nothing.
type exporter struct {
	server   *metrics.Server
	hostname string
	samples  int64
	verdicts []metrics.Verdict
	judged   time.Time
}

// export begins to serve at the address that --listen names, if there is one.
func (g *globals) export(o watchOptions) (*exporter, error) {
	if o.listen == "" {
		return nil, nil
	}
	const patience, late = 30 * time.Second, 10 // samples
	server, err := metrics.Listen(o.listen, max(patience, late*o.interval))
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	host, _ := os.Hostname()
	e := &exporter{server: server, hostname: cmp.Or(g.env.getenv("NODE_NAME"), host)} // as dcgm-exporter has it
	g.warn("metrics are at %s", server.URL())
	return e, nil
}

// sample serves a sample from now on. Findings are made again every few seconds: they
// change slowly, and a scrape comes every 15 seconds or so.
func (e *exporter) sample(s *sample.Sample, w *samples.Watch) {
	if e == nil {
		return
	}
	const every = 5 * time.Second
	if now := time.Now(); now.Sub(e.judged) >= every {
		e.judged, e.verdicts = now, nil
		for _, f := range w.Current() {
			e.verdicts = append(e.verdicts, metrics.Verdict{About: w.About(&f), Finding: f})
		}
	}
	e.samples++
	e.server.Set(&metrics.State{Sample: s, Verdicts: e.verdicts, Samples: e.samples, Hostname: e.hostname, Version: version()})
}

func (e *exporter) close() {
	if e != nil {
		e.server.Close()
	}
}
