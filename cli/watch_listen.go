package cli

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"strandline/face/metrics"
	"strandline/host/sampling/sample"
	"strandline/internal/safefile"
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

// accessFiles are the files, "" where there is none, that decide who may read metrics.
type accessFiles struct{ certificate, key, token string }

// tokenVariable holds the token where no file does.
const tokenVariable = "STRANDLINE_METRICS_TOKEN"

// read reads the files. The certificate is read again later, as it is renewed.
func (a accessFiles) read(g *globals) (out metrics.Access, err error) {
	const maxBytes = 1 << 20
	file := func(path string) ([]byte, error) {
		f, err := safefile.OpenNamed(g.env.context, path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return safefile.ReadAll(f, maxBytes)
	}
	out.Token = g.env.getenv(tokenVariable)
	if a.token != "" {
		text, err := file(a.token)
		if err != nil {
			return out, fmt.Errorf("--token-file: %w", err)
		}
		if out.Token = strings.TrimSpace(string(text)); out.Token == "" {
			return out, fmt.Errorf("--token-file: %s is empty", a.token)
		}
	}
	if a.certificate == "" {
		return out, nil
	}
	load := func() (*tls.Certificate, error) {
		certificate, err := file(a.certificate)
		if err != nil {
			return nil, err
		}
		key, err := file(a.key)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certificate, key)
		return &pair, err
	}
	now, err := load()
	if err != nil {
		return out, fmt.Errorf("--tls-cert: %w", err)
	}
	var mu sync.Mutex
	at := time.Now()
	out.Certificate = func() (*tls.Certificate, error) {
		const renewal = time.Minute
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) >= renewal {
			at = time.Now()
			if newer, err := load(); err == nil { // else it is being written
				now = newer
			}
		}
		return now, nil
	}
	return out, nil
}

// export begins to serve at the address that --listen names, if there is one.
func (g *globals) export(o watchOptions) (*exporter, error) {
	if o.listen == "" {
		return nil, nil
	}
	const patience, late = 30 * time.Second, 10 // samples
	access, err := o.access.read(g)
	if err != nil {
		return nil, err
	}
	server, err := metrics.Listen(o.listen, max(patience, late*o.interval), access)
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
