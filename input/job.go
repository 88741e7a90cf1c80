package input

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"runtime"
	"sync"

	"strandline/logs/ranks"
	"strandline/logs/text"
	"strandline/profiles/figures"
	"strandline/torch/flight"
)

// Ranks reads the texts among the files as those of a job of many processes, once, several at a
// time. Files that are no texts, or cannot be read, are left out.
func (fs *Files) Ranks(ctx context.Context) []*ranks.Text {
	if fs.told != nil {
		return fs.told
	}
	out := make([]*ranks.Text, len(fs.List))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), max(1, len(fs.List))) {
		all.Go(func() {
			for i := range next {
				out[i] = fs.List[i].ranks(ctx)
			}
		})
	}
	for i, f := range fs.List {
		if f.mayBeOfJob() && ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	all.Wait()
	found := out[:0]
	for i, t := range out {
		if fs.List[i].told = t != nil; t != nil {
			found = append(found, t)
		}
	}
	if ctx.Err() == nil {
		fs.told = found
	}
	return found
}

// Dumps reads the files that are dumps of flight recorders by their names and contents, which
// [Files.Ranks] leaves out. They are small: one after the other.
func (fs *Files) Dumps(ctx context.Context) (out []*flight.Dump) {
	const maxSize = 256 << 20 // bytes
	for _, f := range fs.List {
		if _, ok := flight.RankOf(filepath.Base(f.Path)); !ok || f.Size == 0 || f.Size > maxSize || ctx.Err() != nil {
			continue
		}
		_ = f.unpackingQuietly(ctx, func(r io.Reader) error {
			d, err := flight.Read(r, f.Path)
			if err == nil {
				out = append(out, d)
				f.dump = true
			}
			return err
		})
		f.release()
	}
	return out
}

// IsDump reports whether the file is a dump that [Files.Dumps] read.
func (f *File) IsDump() bool { return f.dump }

// Told reports whether the file is a text that [Files.Ranks] read.
func (f *File) Told() bool { return f.told }

// mayBeOfJob reports whether the name is not that of a snapshot, a table or a recording.
func (f *File) mayBeOfJob() bool {
	if f.Path == "-" || f.Size == 0 {
		return false // it can be read only once
	}
	name := nameOf(filepath.Base(f.Path))
	return name == output || name == either
}

// ranks reads the file, nil if it is no text.
func (f *File) ranks(ctx context.Context) (out *ranks.Text) {
	const maxHead = 1024
	defer f.release()
	_ = f.unpackingQuietly(ctx, func(r io.Reader) error { // a file that cannot be read is reported by others
		in := bufio.NewReader(r)
		if head, _ := in.Peek(maxHead); !text.IsText(head) {
			return nil
		}
		found, _ := ranks.Read(in, f.Path, figures.Sizes()) // what was read before an error is used
		if !found.Shape.Document() {
			out = found
		}
		return nil
	})
	return out
}
