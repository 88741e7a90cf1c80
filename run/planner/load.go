package planner

import (
	"fmt"
	"strconv"
	"strings"

	"strandline/plan/serving"
)

// loadOptions are the flags of plan that describe the requests.
type loadOptions struct {
	requests, prompt, output int64
	images                   int64
	size                     string
	host                     float64
}

func (o *loadOptions) add(f *Flags) {
	f.Int64Var(&o.requests, "requests", 0, "simultaneous requests `N`, for times and KV cache")
	f.Int64Var(&o.prompt, "prompt-tokens", 0, "prompt length `N`, tokens")
	f.Int64Var(&o.output, "output-tokens", 0, "answer length `N`, tokens")
	f.Int64Var(&o.images, "images", 0, "images `N` of a request")
	f.StringVar(&o.size, "image-size", "", "image `SIZE`, such as 1920x1080 (default 1024x1024)")
	f.Float64Var(&o.host, "host-bandwidth", 0, "host memory bandwidth, `GB`/s (default 80)")
}

// fill adds the load to a set-up.
func (o *loadOptions) fill(s *serving.Setup) error {
	const maxBandwidth = 1e5
	if !(o.host >= 0 && o.host <= maxBandwidth) {
		return fmt.Errorf("--host-bandwidth %g is not a bandwidth in GB/s", o.host)
	}
	s.HostBandwidth = o.host * 1e9
	s.Load = serving.Load{Requests: o.requests, Prompt: o.prompt, Output: o.output}
	s.Images.Count = o.images
	if o.size == "" {
		return nil
	}
	w, h, ok := strings.Cut(strings.ReplaceAll(strings.ToLower(o.size), "×", "x"), "x")
	width, err1 := strconv.ParseInt(strings.TrimSpace(w), 10, 32)
	height, err2 := strconv.ParseInt(strings.TrimSpace(h), 10, 32)
	if !ok || err1 != nil || err2 != nil || width < 1 || height < 1 {
		return fmt.Errorf("--image-size %q: want width x height in pixels, such as 1920x1080", o.size)
	}
	s.Images.Width, s.Images.Height = width, height
	return nil
}
