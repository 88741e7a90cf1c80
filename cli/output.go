package cli

import (
	"context"
	"io"

	"strandline/internal/safefile"
)

// create makes the file at path with what write writes and returns its length; "-"
// is standard output. The file appears there once it is whole.
func (g *globals) create(ctx context.Context, path string, write func(io.Writer) error) (int64, error) {
	if path == "-" {
		out := &output{ctx: ctx, w: g.env.stdout}
		err := write(out)
		return out.n, err
	}
	f, err := safefile.Create(ctx, path)
	if err != nil {
		return 0, err
	}
	return g.fill(ctx, f, write)
}

// fill writes a file and puts it in its place.
func (g *globals) fill(ctx context.Context, f *safefile.Output, write func(io.Writer) error) (int64, error) {
	out := &output{ctx: ctx, w: f}
	err := g.finish(f, func() error { return write(out) })
	return out.n, err
}

// finish puts a file in its place once write has written it, and discards it if that
// fails, or if the program is interrupted meanwhile.
func (g *globals) finish(f *safefile.Output, write func() error) error {
	g.unfinished.Store(f, true)
	defer g.unfinished.Delete(f)
	defer f.Close()
	if err := write(); err != nil {
		return err
	}
	return f.Commit()
}

// createFile is create for a writer that does not write from the beginning to the end.
func (g *globals) createFile(path string, write func(io.WriterAt) error) (size int64, err error) {
	f, err := safefile.CreateNamed(path)
	if err != nil {
		return 0, err
	}
	err = g.finish(f, func() error {
		if err := write(f); err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			size = info.Size()
		}
		return err
	})
	return size, err
}

// output counts what is written, until the program is interrupted.
type output struct {
	ctx context.Context
	w   io.Writer
	n   int64
}

func (o *output) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := o.w.Write(p)
	o.n += int64(n)
	return n, err
}
