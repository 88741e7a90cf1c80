package diagnosis

import (
	"context"

	"strandline/input"
)

// Diagnose reads and judges files: the recording of a watch or a trace if they are one, with
// the snapshots beside a trace, or all of them together.
func Diagnose(ctx context.Context, files *input.Files, o Options) (*Answer, error) {
	s := Begin(ctx, files, o)
	err := s.readAll(ctx)
	if err == nil {
		return s.Judge(), nil
	}
	if job := s.job.Judge(nil); job != nil && ctx.Err() == nil { // its texts need not be about memory
		answer := Nothing()
		answer.Job = job
		return answer, nil
	}
	return nil, err
}

// Begin begins a session of files, of which the texts of a job may have told some.
func Begin(ctx context.Context, files *input.Files, o Options) *Session {
	job := NewJob(ctx, files)
	s := New(job.Rest(files), o)
	s.all, s.job = files, job
	return s
}

func (s *Session) readAll(ctx context.Context) error {
	alone, err := s.all.Alone(true)
	switch {
	case err != nil:
		return err
	case alone != nil:
		s.files = s.all
		return s.readRecording(ctx, alone)
	}
	return s.all.Each(s.files.Ordered(), func(f *input.File) error {
		in, err := s.Read(ctx, f)
		if err != nil {
			return err
		}
		s.files.Judged(in)
		return s.Add(ctx, in)
	})
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

// Read reads a file for the session, to which what it holds is to be added. The error is an
// [input.Skip] if the other files are judged without it; that is nil inside if there is no more
// to be told of it. Files are read in the order of [input.Files.Ordered].
func (s *Session) Read(ctx context.Context, f *input.File) (input.Input, error) {
	if err := f.LeftOut(); err != nil {
		return nil, input.Skipped(err)
	}
	if s.job.Has(f) || !s.wants(f) {
		return nil, input.Skipped(nil)
	}
	in, err := f.Read(ctx)
	if u, ok := in.(*input.Unknown); ok && err == nil {
		if s.job.Holds(f) {
			return nil, input.Skipped(nil)
		}
		return nil, u.Skipped(u.Err)
	}
	return in, err
}
