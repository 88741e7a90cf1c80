package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/export"
	"strandline/face/report"
	"strandline/face/web"
	"strandline/face/web/engine"
	"strandline/internal/safefile"
	"strandline/internal/secret"
	"strandline/profiles"
	"strandline/torch/snapshot"
	"strandline/units"
)

type viewOptions struct {
	serve        serveOptions
	html, redact string
}

func newView(g *globals) *cobra.Command {
	var o viewOptions
	c := &cobra.Command{
		Use:   "view FILE|DIR…",
		Short: "Look at snapshots, or the recording of a trace or a watch, in the browser",
		Long: `Open a page that shows what was live at each event, by line of code: what is never
freed, what grows, what makes up the peak, and the allocator's segments.
For a recording of ` + "`strandline trace --out`" + ` it shows how the memory of the process
grew, and the stacks behind it; a recording is viewed on its own. Profiles of JAX are
drawn as one history, file by file.
For a recording of ` + "`strandline watch --out`" + ` it shows what each process, container and
device holds over time, with the verdicts drawn into the curves; while the watch still
writes the recording, the page follows it.

The page is served to this machine only, until the command is interrupted; its
address, with a secret, is the first line of output. It opens at once, while
files are still being read. A directory stands for all snapshots below it.

On a remote machine, --listen chooses the port and prints the command that makes
it reachable from yours.

--html writes the page as one file instead, to attach to a ticket: it opens
without strandline and loads nothing. It has all views, at a resolution that the
page states. --redact replaces your paths and names by pseudonyms.`,
		Example: `  strandline view step-2.pickle step-3.pickle step-4.pickle
  strandline view dumps/
  strandline view oom.pickle --listen 8080         on a remote machine
  strandline view oom.pickle --no-open
  strandline view oom.pickle --html oom.html
  strandline view server.trace                     a recording of a trace
  strandline view node.strandline                  a recording of a watch
  strandline view memory-*.prof                    a series of JAX's profiles`,
		Args: files(1, true, "snapshots, directories of them, or the recording of a trace or a watch"),
		RunE: func(c *cobra.Command, args []string) error { return runView(c, g, o, args) },
	}
	c.Flags().BoolVar(&o.serve.noOpen, "no-open", false, "do not open the browser")
	c.Flags().StringVar(&o.serve.listen, "listen", "", "serve on `PORT`, and print how to reach it from elsewhere")
	c.Flags().StringVar(&o.html, "html", "", "write the page to `FILE`, and serve nothing; - is standard output")
	c.Flags().StringVar(&o.redact, "redact", "", "replace your `WHAT` by pseudonyms: paths, names or both")
	return c
}

func runView(c *cobra.Command, g *globals, o viewOptions, args []string) error {
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	what, ok := redactions[o.redact]
	switch {
	case !ok:
		return fmt.Errorf("--redact %s: want paths, names or both", o.redact)
	case o.html != "" && o.serve.listen != "":
		return errors.New("--html writes a file and --listen serves the page; choose one")
	case o.html == "-" && g.json:
		return errors.New("--json and --html - both write to standard output; choose one")
	}
	switch path, err := g.watchAmong(args); {
	case err != nil:
		return err
	case path != "":
		return g.viewWatch(ctx, o, path)
	}
	switch run, path, others, err := g.recording(ctx, args); {
	case err != nil:
		return err
	case run != nil && len(others) > 0:
		return fmt.Errorf("%s is the recording of a trace, which is viewed on its own", path)
	case run != nil:
		return g.viewRecording(ctx, o, path, run)
	}
	v := viewed{g: g, redact: what}
	sources, err := v.series(ctx, args)
	if err == nil && sources == nil {
		sources, err = v.sources(ctx, args)
	}
	if err != nil {
		return err
	}
	if o.html != "" {
		return v.save(ctx, sources, args, o.html)
	}
	e := engine.New(sources)
	loaded := make(chan error, 1)
	read := make(chan struct{})
	load := func() {
		defer close(read)
		err := e.Load(ctx)
		debug.FreeOSMemory() // garbage of reading
		v.reportSkipped()
		if err != nil {
			stop()
		}
		loaded <- err
	}
	shown := page{asker: e, index: "index.html", behind: load}
	if v.redact == 0 { // what is dropped has names and paths of its own
		shown.open = opener(ctx, sources, read)
	}
	if err := g.serve(ctx, o.serve, shown); err != nil {
		return err
	}
	err = <-loaded
	if errors.Is(err, context.Canceled) {
		err = nil // interrupting it is how a user ends it
	}
	return v.end(err, args, len(sources))
}

// opener reads files that are dropped on the page beside the sources that it was started
// with, once those were read. Those that were dropped before give way.
func opener(ctx context.Context, sources []engine.Source, read <-chan struct{}) func([]web.Dropped) (web.Asker, int) {
	last := func() {}
	return func(files []web.Dropped) (web.Asker, int) {
		last()
		all := slices.Clone(sources)
		for _, f := range files {
			size := int64(len(f.Data))
			all = append(all, engine.Source{Path: f.Name, Size: size, Named: true, Read: func(progress func(int64) error) (*snapshot.Snapshot, error) {
				return snapshot.Read(bytes.NewReader(f.Data), snapshot.Options{Name: f.Name, Size: size, Progress: progress})
			}})
		}
		e := engine.New(all)
		ctx, stop := context.WithCancel(ctx)
		before, done := read, make(chan struct{})
		last, read = stop, done
		go func() {
			defer close(done)
			<-before        // sources are read by one at a time
			_ = e.Load(ctx) // problems with single files are in the session
		}()
		return e, len(sources)
	}
}

// serveOptions are how a page is served.
type serveOptions struct {
	noOpen bool
	listen string
}

// A page is what to serve: its Asker, the file with which it begins, what
// its address has after #, and what runs in the background, if anything.
type page struct {
	asker        web.Asker
	index, state string
	behind       func()
	open         func([]web.Dropped) (web.Asker, int) // takes dropped files, if not nil
}

// serve serves a page until the context is done.
func (g *globals) serve(ctx context.Context, o serveOptions, p page) error {
	l, err := listen(o.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	s := web.New(p.asker, port)
	s.Index, s.Pack, s.Open = p.index, o.listen != "", p.open
	address := s.URL() + p.state
	fmt.Fprintln(g.env.stdout, address)
	if s.Pack {
		fmt.Fprintf(g.env.stderr, "strandline: from your machine: %s\n", tunnel(port))
	}
	if !o.noOpen {
		defer browse(s.Once() + p.state)()
	}
	if p.behind != nil {
		go p.behind()
	}
	return s.Serve(ctx, l)
}

// viewed are the files to view. They are read one after another.
type viewed struct {
	g       *globals
	redact  export.Redaction
	partial bool
	others  []string // that are of other kinds
}

// end returns how viewing ends, by the error of loading so many files.
func (v *viewed) end(err error, args []string, files int) error {
	switch {
	case errors.Is(err, engine.ErrNothing):
		return noSnapshot(args, files)
	case err == nil && v.partial:
		return exit(exitPartial)
	}
	return err
}

// save writes the page as a file.
func (v *viewed) save(ctx context.Context, sources []engine.Source, args []string, path string) error {
	e := engine.New(sources)
	err := e.Load(ctx)
	v.reportSkipped()
	if err != nil {
		return v.end(err, args, len(sources))
	}
	if err := v.g.savePage(ctx, path, func(w io.Writer) error { return web.Save(ctx, w, e) }); err != nil {
		return err
	}
	return v.end(nil, args, len(sources))
}

// savePage writes a page as a file, and reports that.
func (g *globals) savePage(ctx context.Context, path string, write func(io.Writer) error) error {
	n, err := g.create(ctx, path, write)
	if err != nil || path == "-" {
		return err
	}
	doc := api.View{Schema: api.ViewSchema, File: path, Bytes: n}
	return g.print(doc, func(w io.Writer, _ report.Style) {
		fmt.Fprintf(w, "wrote %s: %s\n", report.Line(doc.File), units.Bytes(doc.Bytes))
	})
}

// series are the histories of JAX's profiles, if the arguments are such, otherwise nil.
func (v *viewed) series(ctx context.Context, args []string) (out []engine.Source, err error) {
	files, others, err := v.g.profiles(ctx, args)
	if err != nil || len(files) == 0 || slices.ContainsFunc(files, func(f *profiles.File) bool { return f.Format != "jax" }) {
		return nil, nil // reading them as snapshots states what they are
	}
	for _, path := range others {
		v.g.warn("skipped %s: a different kind than the files beside it", path)
	}
	all, err := seriesOf(files, "")
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		list := s.Files
		name := v.called(list[len(list)-1].Name, args)
		if len(list) > 1 {
			name = fmt.Sprintf("%s and %s before it", name, units.Plural(int64(len(list)-1), "file"))
			v.g.warn("%s is drawn as one history, a file a second, in the order of %s; `strandline diagnose` judges it and gives the advice for JAX", name, s.By)
		}
		for _, f := range list {
			v.partial = v.g.profilePartial(f) || v.partial
		}
		out = append(out, engine.Source{Path: name, Named: true, Read: func(func(int64) error) (*snapshot.Snapshot, error) {
			drawn, err := export.Series(list)
			if err == nil && v.redact != 0 {
				drawn = export.Redact(drawn, v.redact)
			}
			return drawn, err
		}})
	}
	return out, nil
}

// sources are the files that arguments name, directories replaced by what is
// below them.
func (v *viewed) sources(ctx context.Context, args []string) (out []engine.Source, err error) {
	paths, named, err := v.g.expand(args)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(paths, func(a, b string) int { // what is probably not a snapshot is read last
		return cmp.Compare(rank(a, named), rank(b, named))
	})
	for _, p := range paths {
		size := sizeOf(p)
		out = append(out, engine.Source{Path: v.called(p, paths), Size: size, Named: named[p] && v.redact == 0, Read: func(progress func(int64) error) (*snapshot.Snapshot, error) {
			defer v.g.release(p)
			s, err := v.g.read(p, size, progress)
			if ctx.Err() != nil { // what was read until then is no longer needed
				return nil, ctx.Err()
			}
			if err != nil && named[p] {
				err = v.g.forDiagnose(ctx, p, err)
			}
			switch {
			case err == nil:
				v.partial = v.g.partial(s) || v.partial
			case !named[p] && v.g.isRecording(p):
				v.g.warn("skipped %s: the recording of a trace is viewed on its own", p)
			case !named[p] && errors.Is(err, snapshot.ErrNotSnapshot) && !likeSnapshot(p):
				v.others = append(v.others, p)
			case (len(paths) > 1 || v.redact != 0) && !errors.Is(err, context.Canceled):
				v.g.warn("skipped %s", describe(err))
			}
			switch {
			case v.redact == 0:
				return s, err
			case err != nil: // it names the file
				return nil, snapshot.ErrNotSnapshot
			}
			return export.Redact(s, v.redact), nil
		}})
	}
	if len(out) == 0 {
		return nil, noSnapshot(args, 0)
	}
	return out, nil
}

// called returns the page's name for a file. Where it is redacted, the folder of
// all files is left out.
func (v *viewed) called(path string, all []string) string {
	if v.redact == 0 {
		return path
	}
	folder := filepath.Dir(path)
	for _, p := range all {
		for folder != "." && folder != "/" && !strings.HasPrefix(p, folder+string(filepath.Separator)) {
			folder = filepath.Dir(folder)
		}
	}
	if short, err := filepath.Rel(folder, path); err == nil {
		return short
	}
	return filepath.Base(path)
}

// rank returns when to read a file.
func rank(path string, named map[string]bool) int {
	if named[path] || likeSnapshot(path) {
		return 0
	}
	return 1
}

// reportSkipped reports which files were skipped because nothing about them looks like a
// snapshot.
func (v *viewed) reportSkipped() {
	if len(v.others) > 0 {
		v.g.warn("skipped %s", otherFiles(v.others))
	}
}

// listen takes a port of this machine, any if none is asked for.
func listen(where string) (net.Listener, error) {
	port := 0
	if where != "" {
		n, err := strconv.ParseUint(where, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("--listen %q: want a port, such as 8080; the page is served to this machine only", where)
		}
		port = int(n)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", where, err)
	}
	return l, nil
}

// tunnel is the command that makes a port of this machine one of the user's.
func tunnel(port int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "HOST"
	}
	if u, err := user.Current(); err == nil {
		host = u.Username + "@" + host
	}
	return fmt.Sprintf("ssh -N -L %d:127.0.0.1:%d %s", port, port, host)
}

// browse opens an address in the user's browser, if there is one, by a page that
// only this user can read: other users see what a command is started with. It
// returns what removes the page.
func browse(address string) (done func()) {
	dir, err := safefile.MakeTemp("strandline-page")
	if err != nil {
		return func() {}
	}
	done = func() { dir.Remove() }
	file := filepath.Join(dir.Path, "open.html")
	text := fmt.Sprintf("<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">"+
		"<meta http-equiv=\"refresh\" content=\"0; url=%[1]s\"><a href=\"%[1]s\">strandline</a>\n", html.EscapeString(address))
	folder, err := safefile.OpenFolder(dir.Path)
	if err == nil {
		err = errors.Join(folder.Write(filepath.Base(file), []byte(text)), folder.Close())
	}
	if err != nil {
		return done
	}
	command := []string{"xdg-open", file}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open", file}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", file}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Env = secret.Environ(os.Environ())
	if c.Start() == nil {
		go c.Wait()
	}
	return done
}
