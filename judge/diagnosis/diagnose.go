package diagnosis

import (
	"context"
	"fmt"

	"strandline/input"
)

// Diagnose reads and judges files: the recording of a watch or a trace if they are one, with
// the snapshots beside a trace, or all of them together.
func Diagnose(ctx context.Context, files *input.Files, o Options) (*Answer, error) {
	of := NewJob(ctx, files)
	answer, err := diagnose(ctx, files, of, o)
	job := of.Judge(answer)
	if err != nil && job != nil && ctx.Err() == nil {
		answer, err = Nothing(), nil // its texts need not be about memory
	}
	if err != nil {
		return nil, err
	}
	answer.Job = job
	return answer, nil
}

func diagnose(ctx context.Context, files *input.Files, of *Job, o Options) (*Answer, error) {
	alone, err := files.Alone(true)
	if err != nil {
		return nil, err
	}
	s := New(files, Options{})
	if alone != nil {
		err = s.readRecording(ctx, alone)
	} else {
		s = New(of.Rest(files), o)
		err = s.read(ctx, files, of)
	}
	if err != nil {
		return nil, err
	}
	return s.Judge(), nil
}

// readRecording reads the recording of a watch, or that of a trace with the snapshots beside it.
func (s *Session) readRecording(ctx context.Context, alone *input.File) error {
	in, err := alone.Read(ctx)
	if err != nil {
		return err
	}
	if u, ok := in.(*input.Unknown); ok {
		return u.Err
	}
	s.files.Judged(in)
	if err := s.Add(ctx, in); err != nil {
		return err
	}
	if s.files.Leave(alone); len(s.files.List) > 0 {
		_, err = s.files.EachSnapshot(ctx, func(in *input.Snapshot) { s.AddSnapshot(in.Name, in.Snapshot) })
	}
	return err
}

// read reads those of all files that are of the session: the texts of a job may have told the others.
func (s *Session) read(ctx context.Context, all *input.Files, of *Job) error {
	return all.Each(s.files.Ordered(), func(f *input.File) error {
		switch {
		case !f.Named && f.IsRecording():
			return input.Skipped(fmt.Errorf("%s: a recording is judged if it is named, alone or with snapshots", f.Path))
		case !s.Wants(f):
			return input.Skipped(nil)
		}
		in, err := f.Read(ctx)
		if err != nil {
			return err
		}
		if u, ok := in.(*input.Unknown); ok {
			if of.Holds(f) {
				return input.Skipped(nil)
			}
			return u.Skipped(u.Err)
		}
		s.files.Judged(in)
		return s.Add(ctx, in)
	})
}
