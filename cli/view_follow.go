package cli

import (
	"context"
	"slices"
	"sync"
	"time"

	"strandline/face/web/engine"
	"strandline/input"
	"strandline/record"
)

// followEvery is how often a folder is listed that is written to.
const followEvery = time.Second

// written reports whether `strandline record` still writes to one of some folders.
func written(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		m, err := record.ReadManifest(path)
		return err == nil && m.Ended == nil
	})
}

// A showing is what a server shows: files on a disk, which may become more, and beside them
// those that were dropped on the page last.
type showing struct {
	files *input.Files
	live  bool            // more are to come
	read  <-chan struct{} // closed when what is shown was read
	show  func(a engine.Asker, index string)

	mu      sync.Mutex   // held while another page is made
	disk    *engine.Page // of files
	now     *engine.Page // what is shown
	stop    func()       // ends reading what was dropped
	dropped []input.Source
	beside  *engine.Page // of what was dropped, nil if nothing was
}

// page is that of all files, without reading again the first n of those that are shown. A
// recording is shown on its own. First is the number of the first file that was dropped.
func (s *showing) page(n int) (p *engine.Page, first int) {
	p = s.disk
	if s.beside != nil {
		p = s.beside
		if e, ok := s.disk.Asker.(*engine.Engine); ok && p.Index == s.disk.Index {
			p, first = e.With(s.files.With(s.dropped), s.beside)
		}
	}
	p.Keep(s.now, min(n, s.now.Files()))
	return p, first
}

// drop shows files that are dropped on the page beside those on the disk, once those were read.
// Those that were dropped before give way.
func (s *showing) drop(ctx context.Context, dropped []input.Source) (first int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.Beside(dropped)
	beside, err := engine.Open(ctx, input.Of(dropped, input.Options{}), engine.Options{})
	if err != nil {
		return 0, err
	}
	known := s.disk.Files()
	if s.now == s.beside { // none of those on the disk is shown
		known = 0
	}
	s.dropped, s.beside = dropped, beside
	p, first := s.page(known)
	if s.stop != nil {
		s.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	before, done := s.read, make(chan struct{})
	s.now, s.stop, s.read = p, stop, done
	markLive(p.Asker, s.live)
	go func() {
		defer close(done)
		<-before        // sources are read by one at a time
		_ = p.Load(ctx) // problems with single files are in the session
	}()
	s.show(p.Asker, p.Index)
	return first, nil
}

// follow shows what is written into folders from now on: as soon as more is there and was read,
// a page of all takes the place of the one before. It ends with the recording.
func (s *showing) follow(ctx context.Context) {
	for more := true; more; {
		more = written(s.files.Given)
		select {
		case <-ctx.Done():
			return
		case <-time.After(followEvery):
		}
		if files, err := input.OpenPaths(s.files.Given, input.Options{}); err == nil {
			if !files.Same(s.files) {
				s.renew(ctx, files)
			}
			files.Close() // all was read
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = false
	markLive(s.now.Asker, false)
}

// renew shows more files on the disk. What was dropped and is shown on its own stays.
func (s *showing) renew(ctx context.Context, files *input.Files) {
	s.mu.Lock()
	defer s.mu.Unlock()
	disk, err := engine.Open(ctx, files, engine.Options{Code: codeHere})
	if err != nil {
		return
	}
	<-s.read
	formerFiles, formerDisk := s.files, s.disk
	s.files, s.disk = files, disk
	if s.now == s.beside {
		return
	}
	p, _ := s.page(s.now.Files())
	if p.Load(ctx) != nil {
		s.files, s.disk = formerFiles, formerDisk
		return
	}
	former := s.now
	s.now = p
	markLive(p.Asker, s.live)
	s.show(p.Asker, p.Index)
	if e, ok := former.Asker.(*engine.Engine); ok {
		e.Replaced()
	}
}

// markLive tells a page whether more is to come.
func markLive(a engine.Asker, more bool) {
	if e, ok := a.(*engine.Engine); ok {
		e.Live(more)
	}
}
