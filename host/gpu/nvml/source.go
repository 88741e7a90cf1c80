package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"strandline/host/sampling/sample"
	"strandline/internal/sorts"
)

// ErrNoLibrary states that NVML cannot be used on this machine: the library is not there,
// or there is no reader for it.
var ErrNoLibrary = errors.New("NVML is not available")

// Options of a [Source]; the zero ones are those to use.
type Options struct {
	// Patience is how long one device may take to answer before the call is considered
	// hung, 2 seconds if it is 0; Start how long the library may take to begin, a minute
	// if it is 0: it initializes all devices, one after the other.
	Patience, Start time.Duration
	// Again is after how long a device whose call hung is asked again; a minute if it
	// is 0.
	Again time.Duration
	// Env is the environment of the reader, that of this process if it is nil.
	Env []string
}

// A Source is a [sample.DeviceSource] that asks the driver's library. Its methods are not
// called concurrently.
type Source struct {
	o      Options
	now    *reader
	driver string
	stuck  atomic.Int32 // readers that were ended and are still there
	known  map[int]sample.Device
	// silent are devices that did not answer.
	silent map[int]silence
}

// A silence is why a device did not answer, and when to ask it again.
type silence struct {
	why   string
	until time.Time
}

// maxStuck is how many readers may hang in the driver at once, where the kernel does
// not end them before the call returns.
const maxStuck = 4

// maxDevices is how many devices can be left out of a question: the bits of a number.
const maxDevices = 64

// New is a source that has not asked yet.
func New(o Options) *Source {
	const patience, start, again = 2 * time.Second, time.Minute, time.Minute
	o.Patience, o.Start, o.Again = cmp.Or(o.Patience, patience), cmp.Or(o.Start, start), cmp.Or(o.Again, again)
	return &Source{o: o, known: map[int]sample.Device{}, silent: map[int]silence{}}
}

// Name is that of the library.
func (s *Source) Name() string { return "NVML" }

// Driver is the version of the driver, empty as long as none has answered.
func (s *Source) Driver() string { return s.driver }

// Close ends the reader.
func (s *Source) Close() error {
	s.end()
	return nil
}

// Read asks for all devices. One whose call hangs is in the answer with a note, and not
// asked again for some time. The error is [ErrNoLibrary] if there is none here; other
// errors are of a driver that is there.
func (s *Source) Read(ctx context.Context) ([]sample.Device, error) {
	out, tried := map[int]sample.Device{}, map[int]bool{}
	for {
		a, last, err := s.ask(ctx, tried)
		for _, d := range a.devices {
			out[d.Index] = d
			tried[d.Index] = true
		}
		switch {
		case err == nil && a.err != nil:
			return nil, a.err
		case err == nil:
			return s.all(out), nil
		case last < 0 || last >= maxDevices:
			return nil, err
		}
		tried[last] = true
		s.silent[last] = silence{why: err.Error(), until: time.Now().Add(s.o.Again)}
	}
}

// ask asks for the devices that were not tried and are not known to hang. last is the
// device at which it failed, -1 if it was none.
func (s *Source) ask(ctx context.Context, tried map[int]bool) (a *answer, last int, err error) {
	a = &answer{}
	if err := s.begin(ctx); err != nil {
		return a, -1, err
	}
	var skip uint64
	for i := range maxDevices {
		if tried[i] || time.Now().Before(s.silent[i].until) {
			skip |= 1 << i
		}
	}
	if _, err := fmt.Fprintf(s.now.questions, "read %d\n", skip); err != nil {
		s.end()
		return a, -1, errEnded
	}
	for !a.done {
		line, err := s.now.line(ctx, s.o.Patience)
		if err == nil {
			err = a.add(line)
		}
		if err != nil {
			s.end()
			return s.dropFailed(a, ctx, err)
		}
	}
	return a, -1, nil
}

// dropFailed drops the device at which a question failed from the answer.
func (s *Source) dropFailed(a *answer, ctx context.Context, err error) (*answer, int, error) {
	if len(a.devices) == 0 || ctx.Err() != nil {
		return a, -1, err
	}
	failed := func(d sample.Device) bool { return d.Index == a.asked || d.Parent != nil && *d.Parent == a.asked }
	for _, d := range a.devices {
		if d.Index == a.asked && d.UUID != "" {
			s.known[d.Index] = d
		}
	}
	a.devices = slices.DeleteFunc(a.devices, failed)
	return a, a.asked, err
}

// all are the devices in order, those that hang among them.
func (s *Source) all(out map[int]sample.Device) []sample.Device {
	devices := []sample.Device{}
	for i, d := range out {
		if d.Parent == nil {
			s.known[i] = d
			delete(s.silent, i)
		}
		devices = append(devices, d)
	}
	for i, silence := range s.silent {
		before := s.known[i] // what it is does not change
		devices = append(devices, sample.Device{
			Index: i, UUID: before.UUID, Name: before.Name, Processes: []sample.Holding{{}},
			Note: fmt.Sprintf("for this device, %s; it is asked again after %s", silence.why, s.o.Again),
		})
	}
	sorts.By(devices, func(a, b sample.Device) int { return cmp.Compare(order(&a), order(&b)) })
	return devices
}

// order puts the parts of a device behind it.
func order(d *sample.Device) int {
	if d.Parent != nil {
		return 1000**d.Parent + d.Index
	}
	return 1000 * d.Index
}

// begin starts the reader, if none runs, and waits until the library is ready. Where
// that takes longer than the context, the next call waits on.
func (s *Source) begin(ctx context.Context) error {
	if s.now == nil {
		if n := s.stuck.Load(); n >= maxStuck {
			return fmt.Errorf("%d calls of NVIDIA's driver have not returned, and no other is made before one of them does; `dmesg` may say why", n)
		}
		r, err := start(s.o.Env, &s.stuck)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoLibrary, err)
		}
		s.now = r
	}
	if s.now.ready {
		return nil
	}
	line, err := s.now.line(ctx, s.o.Start-time.Since(s.now.began))
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err == nil {
		err = s.ready(line)
	} else if errors.Is(err, errEnded) { // where the loader of programs is missing, for example
		err = fmt.Errorf("%w: %w", ErrNoLibrary, err)
	}
	if err != nil {
		s.end()
	}
	return err
}

// ready takes the first line of the reader.
func (s *Source) ready(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	if word == "ready" {
		s.driver, s.now.ready = rest, true
		return nil
	}
	code, rest, _ := strings.Cut(rest, " ")
	if code == "library" {
		return fmt.Errorf("%w: %s", ErrNoLibrary, strings.ToValidUTF8(rest, "?"))
	}
	n, err := strconv.Atoi(code)
	if err != nil {
		return fmt.Errorf("the reader of NVML says %q", line)
	}
	return fmt.Errorf("NVIDIA's driver cannot be asked: %s", errorText(n))
}

func (s *Source) end() {
	if s.now != nil {
		s.now.end()
		s.now = nil
	}
}
