package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"strandline/face/export"
	"strandline/face/report"
	"strandline/internal/lazyregexp"
	"strandline/internal/packed"
	"strandline/internal/shell"
	"strandline/judge/tables"
	"strandline/logs/text"
	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/profiles/kineto"
	"strandline/profiles/levels"
	"strandline/profiles/nsys"
	"strandline/profiles/printed"
	"strandline/profiles/proc"
	"strandline/torch/compare"
	"strandline/torch/snapshot"
)

// A profileReader reads the files of one program.
type profileReader struct {
	// is reports whether an unpacked file that begins with head can be one.
	is   func(head []byte) bool
	read func(r io.Reader) (*profiles.File, error)
}

var profileReaders = []profileReader{
	{jax.Is, jax.Read},
	{kineto.Is, kineto.Read},
	{proc.Is, proc.Read},
	{printed.Is, printed.Read},
	{levels.Is, levels.Read},
}

// database reads an export of Nsight Systems, which SQLite opens by its name.
func database(ctx context.Context, path string) (*profiles.File, error) {
	if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("an SQLite database is read from a regular file, not from standard input or a pipe")
	}
	return nsys.Read(ctx, path)
}

// profile reads a file that another program than PyTorch wrote; it is nil for a
// file of PyTorch or of an unknown program, and for one that cannot be opened, for which
// reading it as a snapshot gives the error.
func (g *globals) profile(ctx context.Context, path string) (*profiles.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, nil
	}
	r, err := g.source(path)
	if err != nil {
		return nil, nil
	}
	defer r.Close()
	bar := progress{g: g, path: path, size: sizeOf(path), began: time.Now()}
	defer bar.clear()
	raw := bufio.NewReader(&watched{ctx: ctx, r: r, bar: &bar})
	if magic, _ := raw.Peek(4); bar.size == 0 && packed.IsZstd(magic) {
		return nil, nil // a pipe: its decoder reads ahead, and it could not be opened again
	}
	unpacked, _, err := packed.Open(raw, bar.size)
	if err != nil {
		return nil, nil
	}
	defer unpacked.Close()
	in := bufio.NewReaderSize(unpacked, 64<<10)
	head, _ := in.Peek(64 << 10)
	if !jax.Is(head) {
		if plain := text.Plain(in, head); plain != io.Reader(in) {
			in = bufio.NewReaderSize(plain, 64<<10)
			head, _ = in.Peek(64 << 10)
		}
	}
	for _, reader := range append(profileReaders, profileReader{nsys.Is, func(io.Reader) (*profiles.File, error) { return database(ctx, path) }}) {
		if !reader.is(head) {
			continue
		}
		f, err := reader.read(in)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, profiles.ErrOther):
			return nil, nil
		case err != nil && g.containsOOM(ctx, path):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		f.Name = path
		return f, nil
	}
	return nil, nil
}

// profilePartial reports on stderr where reading of a file ended.
func (g *globals) profilePartial(f *profiles.File) bool {
	if f.Partial != nil {
		g.warn("%s is only partly readable: %v; what comes before that is used", f.Name, f.Partial)
	}
	return f.Partial != nil
}

// inspectProfile prints the facts of a file, or returns why it was not read.
func (g *globals) inspectProfile(f *profiles.File, o inspectOptions, err error) error {
	switch {
	case err != nil:
		return err
	case o.at != unset || o.alloc != unset || o.pools:
		return fmt.Errorf("%s: --at, --alloc and --pools are for snapshots of PyTorch; this file is of kind %s", f.Name, f.Format)
	}
	doc := report.NewProfile(f)
	if err := g.print(doc, doc.Text); err != nil {
		return err
	}
	if g.profilePartial(f) {
		return exit(exitPartial)
	}
	return nil
}

// exportProfile writes what a file of another program holds by stack, or returns why
// it was not read.
func (g *globals) exportProfile(ctx context.Context, o exportOptions, f *profiles.File, err error) error {
	write := map[string]func(io.Writer, *profiles.File) error{"pprof": export.PprofOfProfile, "folded": export.FoldedOfProfile, "csv": export.CSVOfProfile}[o.to]
	switch {
	case err != nil:
		return err
	case len(f.Uses) == 0:
		return g.notSnapshot(f)
	}
	if err := o.onlyWhole("a file of kind "+f.Format, "pprof, folded or csv", write != nil); err != nil {
		return err
	}
	if err := g.exportStacks(ctx, o, len(f.Uses), func(w io.Writer) error { return write(w, f) }); err != nil {
		return err
	}
	if g.profilePartial(f) {
		return exit(exitPartial)
	}
	return nil
}

// notSnapshot is the error of a command that takes only snapshots, for a file
// of another program: it states which commands read it.
func (g *globals) notSnapshot(f *profiles.File) error {
	more := ""
	switch {
	case f.Format == "jax":
		more = "; `strandline view` draws it, and `strandline export --to csv` writes a table"
	case len(f.Uses) == 0:
		more = "; it holds levels of memory, not allocations with stacks"
	}
	return fmt.Errorf("%s: %w: it is a file of kind %s; `strandline diagnose %s` judges it, several of them as a series, and `strandline inspect --json` gives its figures%s",
		f.Name, snapshot.ErrNotSnapshot, f.Format, shell.File(f.Name), more)
}

// diagnoseProfiles judges the files of other programs, if the arguments are such. It
// is not done where they are something else.
func (g *globals) diagnoseProfiles(ctx context.Context, group string, limit *int64, args []string) (done bool, err error) {
	files, others, err := g.profiles(ctx, args)
	switch {
	case err != nil || len(files) == 0:
		return false, err
	}
	for _, path := range others {
		g.warn("skipped %s: a different kind than the files beside it", path)
	}
	all, err := seriesOf(files, group)
	if err != nil {
		return false, err
	}
	return true, g.judgeProfiles(files, all, limit)
}

// judgeProfiles judges series of files, and prints what it finds.
func (g *globals) judgeProfiles(files []*profiles.File, all []tables.Series, limit *int64) error {
	partial := false
	for i := range all {
		all[i].Limit = limit
	}
	for _, f := range files {
		partial = g.profilePartial(f) || partial
	}
	answer := tables.Judge(all)
	doc := report.NewProfiles(answer, all)
	if err := g.print(doc, doc.Text); err != nil {
		return err
	}
	switch {
	case problems(answer.Findings):
		return exit(exitProblem)
	case partial:
		return exit(exitPartial)
	}
	return nil
}

// profiles reads the files of other programs among what the arguments name, and
// returns the paths of the others. It returns nothing if a snapshot is among them: then
// the snapshots are judged, and the other files only named.
func (g *globals) profiles(ctx context.Context, args []string) (files []*profiles.File, others []string, err error) {
	var broken []error
	paths, _, err := g.expand(args)
	if err != nil {
		return nil, nil, nil // which reading them as snapshots explains
	}
	for _, path := range paths {
		f, err := g.profile(ctx, path)
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil && len(paths) == 1:
			return nil, nil, err
		case err != nil:
			broken = append(broken, err)
		case f == nil && likeSnapshot(path):
			return nil, nil, nil
		case f == nil:
			others = append(others, path)
		case (f.Host != nil || len(f.Columns) > 0) && g.containsOOM(ctx, path):
			others = append(others, path)
		default:
			files = append(files, f)
		}
	}
	for _, err := range broken {
		if len(files) > 0 {
			g.warn("skipped %v", err)
		}
	}
	return files, others, nil
}

// containsOOM reports whether a text of /proc, or one that reads as a table, also states that
// memory ran out: the text contains both, and the failure is to be explained.
func (g *globals) containsOOM(ctx context.Context, path string) bool {
	d, _ := g.readText(ctx, path, profiles.ErrOther)
	return d != nil
}

// seriesOf sorts files by process and kind, and those of each by time.
func seriesOf(files []*profiles.File, group string) (out []tables.Series, err error) {
	var re *regexp.Regexp
	if group != "" {
		if re, err = regexp.Compile(group); err != nil {
			return nil, fmt.Errorf("--group: %w", err)
		}
	}
	byKind := map[string][]string{}
	byPath := map[string]*profiles.File{}
	var kinds []string
	for _, f := range files {
		if byKind[f.Format] == nil {
			kinds = append(kinds, f.Format)
		}
		byKind[f.Format] = append(byKind[f.Format], f.Name)
		byPath[f.Name] = f
	}
	for _, kind := range kinds {
		if kind == profiles.Levels { // each is a series
			for _, path := range byKind[kind] {
				s := tables.Series{Files: []*profiles.File{byPath[path]}}
				if len(files) > 1 {
					s.Process = filepath.Base(path)
				}
				out = append(out, s)
			}
			continue
		}
		names, groups := compare.Group(byKind[kind], re)
		for _, name := range names {
			s := tables.Series{Process: name}
			paths := groups[name]
			s.By = inOrder(paths)
			for _, p := range paths {
				s.Files = append(s.Files, byPath[p])
			}
			if len(names) == 1 && len(kinds) > 1 {
				s.Process = kind
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// inOrder sorts paths by the numbers in their names, or, where these do not
// distinguish them, by the time of their last change, and returns which. These files hold no
// time.
func inOrder(paths []string) (by string) {
	numbers := map[string][]int{}
	seen := map[string]bool{}
	for _, p := range paths {
		for _, digits := range digitsIn.FindAllString(filepath.Base(p), -1) {
			n, _ := strconv.Atoi(digits)
			numbers[p] = append(numbers[p], n)
		}
		seen[fmt.Sprint(numbers[p])] = true
	}
	if len(seen) == len(paths) {
		slices.SortStableFunc(paths, func(a, b string) int { return slices.Compare(numbers[a], numbers[b]) })
		return "the numbers in their names"
	}
	changed := map[string]time.Time{}
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil {
			changed[p] = info.ModTime()
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int {
		if c := changed[a].Compare(changed[b]); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return "their last change"
}

var digitsIn = lazyregexp.New(`\d{1,9}`)
