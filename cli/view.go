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
	"net/netip"
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
	"strandline/input"
	"strandline/internal/safefile"
	"strandline/internal/secret"
	"strandline/judge/diagnosis"
	"strandline/judge/tables"
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
		Short: "Explore snapshots and recordings in the browser",
		Long: `Explore snapshots, recordings and profiles in the browser.

Snapshots: live memory at each event by line of code, leaks, growth, the peak,
and the allocator's segments. A directory stands for all snapshots below it.
A recording of trace: how the process grew, with the stacks behind it.
A recording of watch: each process, container and device over time. The page
follows a watch that still runs.
JAX profiles: one history, file by file.

Only this machine can open the page. The first line of output is its address,
which holds a secret. Ctrl-C ends it. On a remote machine, --listen sets the
port; the ssh command that opens a tunnel is printed.

--html writes the page as one file for a ticket. It needs neither strandline nor
a network. --redact replaces your paths and names by pseudonyms.`,
		Example: `  strandline view dumps/
  strandline view oom.pickle --listen 8080     on a remote machine
  strandline view oom.pickle --html oom.html
  strandline view server.trace                 a recording of a trace
  strandline view memory-*.prof                JAX profiles`,
		Args: files(1, true, "snapshots, directories of them, or the recording of a trace or a watch"),
		RunE: func(c *cobra.Command, args []string) error { return runView(c, g, o, args) },
	}
	c.Flags().BoolVar(&o.serve.noOpen, "no-open", false, "do not open the browser")
	c.Flags().StringVar(&o.serve.listen, "listen", "", "serve on `PORT`, and print the ssh command that reaches it")
	c.Flags().StringVar(&o.html, "html", "", "write the page to `FILE` and serve nothing; - is standard output")
	c.Flags().StringVar(&o.redact, "redact", "", "replace your `WHAT` by pseudonyms: paths, names or both")
	return c
}

func runView(c *cobra.Command, g *globals, o viewOptions, args []string) error {
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	redacts, ok := redactions[o.redact]
	switch {
	case !ok:
		return fmt.Errorf("--redact %s: want paths, names or both", o.redact)
	case o.html != "" && o.serve.listen != "":
		return errors.New("--html writes a file and --listen serves the page; choose one")
	case o.html == "-" && g.json:
		return errors.New("--json and --html - both write to standard output; choose one")
	}
	files, err := g.open(args)
	if err != nil {
		return err
	}
	defer files.Close()
	switch alone, err := files.Alone(false); {
	case err != nil:
		return err
	case alone != nil:
		return g.viewAlone(ctx, o, files, alone)
	}
	v := viewed{g: g, files: files, redact: redacts}
	if err := v.find(ctx); err != nil {
		return err
	}
	if o.html != "" {
		return v.save(ctx, o.html)
	}
	e := engine.New(v.judged(), v.sources)
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
		shown.open = v.opener(ctx, read)
	}
	if err := g.serve(ctx, o.serve, shown); err != nil {
		return err
	}
	err = <-loaded
	if errors.Is(err, context.Canceled) {
		err = nil // interrupting it is how a user ends it
	}
	return v.end(err)
}

// viewAlone views the recording of a trace or a watch.
func (g *globals) viewAlone(ctx context.Context, o viewOptions, files *input.Files, alone *input.File) error {
	in, err := alone.Read(ctx)
	if err != nil {
		return err
	}
	switch in := in.(type) {
	case *input.Watch:
		return g.viewWatch(ctx, o, in)
	case *input.Trace:
		return g.viewTrace(ctx, o, files, in)
	}
	return notSnapshot(in)
}

// viewTrace serves or saves the page of a recording.
func (g *globals) viewTrace(ctx context.Context, o viewOptions, files *input.Files, in *input.Trace) error {
	if o.redact != "" {
		return errors.New("--redact is for snapshots: it does not replace paths and names in the recording of a trace")
	}
	partial := g.partial(in)
	asker := engine.NewRecording(files, in)
	var err error
	if o.html != "" {
		err = g.savePage(ctx, o.html, func(w io.Writer) error { return web.SaveRecording(ctx, w, asker) })
	} else {
		err = g.serve(ctx, o.serve, page{asker: asker, index: "recording.html"})
	}
	if err == nil && partial {
		return exit(exitPartial)
	}
	return err
}

// opener reads files that are dropped on the page beside the sources that it was started
// with, once those were read. Those that were dropped before give way.
func (v *viewed) opener(ctx context.Context, read <-chan struct{}) func([]web.Dropped) (web.Asker, int) {
	last := func() {}
	return func(dropped []web.Dropped) (web.Asker, int) {
		last()
		var more []input.Source
		for _, f := range dropped {
			more = append(more, input.Source{Path: f.Name, Size: int64(len(f.Data)), Named: true, Open: func() (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(f.Data)), nil
			}})
		}
		files := v.files.With(more)
		e := engine.New(files, append(slices.Clone(v.sources), engine.Sources(input.Of(more, input.Options{}))...))
		ctx, stop := context.WithCancel(ctx)
		before, done := read, make(chan struct{})
		last, read = stop, done
		go func() {
			defer close(done)
			<-before        // sources are read by one at a time
			_ = e.Load(ctx) // problems with single files are in the session
		}()
		return e, len(v.sources)
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
	remote := o.listen != "" || g.env.getenv("SSH_CONNECTION") != ""
	s.Index, s.Pack, s.Open = p.index, remote, p.open
	address := s.URL() + p.state
	fmt.Fprintln(g.env.stdout, address)
	if remote {
		fmt.Fprintf(g.env.stderr, "strandline: from your machine: %s\n", tunnel(port, g.env.getenv))
	}
	if !o.noOpen && g.env.getenv("SSH_CONNECTION") == "" {
		defer browse(s.Once() + p.state)()
	}
	if p.behind != nil {
		go p.behind()
	}
	if err := s.Serve(ctx, l); err != nil || g.interrupted.Err() == nil { // nothing could be read
		return err
	}
	return exit(exitInterrupted)
}

// viewed are the files to view. They are read one after another.
type viewed struct {
	g       *globals
	files   *input.Files
	sources []engine.Source
	redact  export.Redaction
	partial bool
	skipper skipper
}

// judged are the files by which the page is judged: where it is redacted, they have no
// recorder's manifest, which has names and paths.
func (v *viewed) judged() *input.Files {
	if v.redact != 0 {
		return input.Of(nil, input.Options{})
	}
	return v.files
}

// end returns how viewing ends, by the error of loading.
func (v *viewed) end(err error) error {
	switch {
	case errors.Is(err, engine.ErrNothing):
		return noSnapshot(v.files)
	case err == nil && v.partial:
		return exit(exitPartial)
	}
	return err
}

// save writes the page as a file.
func (v *viewed) save(ctx context.Context, path string) error {
	e := engine.New(v.judged(), v.sources)
	err := e.Load(ctx)
	v.reportSkipped()
	if err != nil {
		return v.end(err)
	}
	if err := v.g.savePage(ctx, path, func(w io.Writer) error { return web.Save(ctx, w, e) }); err != nil {
		return err
	}
	return v.end(nil)
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

// find finds the sources of the page: histories of JAX's profiles where the files are such,
// otherwise each file.
func (v *viewed) find(ctx context.Context) error {
	v.skipper = skipper{g: v.g, files: v.files, several: v.redact != 0}
	if len(v.files.List) == 0 {
		return noSnapshot(v.files)
	}
	if v.files.Tables() && (v.redact != 0 || diagnosis.NewJob(ctx, v.files) == nil) {
		return v.findTables(ctx)
	}
	files := v.files.Ordered()
	slices.SortStableFunc(files, func(a, b *input.File) int { return cmp.Compare(turn(a), turn(b)) })
	for _, f := range files {
		v.sources = append(v.sources, v.source(f))
	}
	return nil
}

// turn is when to read a file: what is probably not a snapshot is read last.
func turn(f *input.File) int {
	if f.Named || f.NamedAsSnapshot() {
		return 0
	}
	return 1
}

// findTables reads tables. Profiles of JAX are drawn, each series as one history.
func (v *viewed) findTables(ctx context.Context) error {
	s := diagnosis.New(v.files, diagnosis.Options{})
	byPath := map[string]input.Input{}
	var last error
	for _, f := range v.files.Ordered() {
		if !s.Wants(f) {
			v.g.warnOfFile("skipped %s: a different kind than the files beside it", f.Path)
			continue
		}
		in, err := f.Read(ctx)
		if err != nil {
			return err
		}
		if u, ok := in.(*input.Unknown); ok {
			last = u.Err
			v.skipper.skip(f, u.Err)
			continue
		}
		v.partial = v.g.partial(in) || v.partial
		byPath[f.Path] = in
		if err := s.Add(ctx, in); err != nil {
			return err
		}
	}
	if len(byPath) == 0 {
		return last
	}
	all := s.Series()
	if slices.ContainsFunc(all, func(s tables.Series) bool { return s.Files[0].Format != "jax" }) {
		if v.redact != 0 {
			return notSnapshot(byPath[all[0].Files[0].Name])
		}
		for path, in := range byPath {
			v.sources = append(v.sources, engine.Source{Path: path, Size: in.Origin().Size, Named: true, Read: func(context.Context, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
				return nil, []input.Input{in}, nil
			}})
		}
		slices.SortFunc(v.sources, func(a, b engine.Source) int { return cmp.Compare(a.Path, b.Path) })
		return nil
	}
	for _, series := range all {
		v.sources = append(v.sources, v.history(series, byPath))
	}
	return nil
}

// history is a series of JAX's profiles, drawn as one history.
func (v *viewed) history(series tables.Series, byPath map[string]input.Input) engine.Source {
	list := series.Files
	name := v.displayName(list[len(list)-1].Name)
	if len(list) > 1 {
		name = fmt.Sprintf("%s and %s before it", name, units.Plural(int64(len(list)-1), "file"))
		v.g.warn("%s is drawn as one history, a file a second, in the order of %s; `strandline diagnose` judges it and gives the advice for JAX", name, series.By)
	}
	return engine.Source{Path: name, Named: true, Read: func(context.Context, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		drawn, err := export.Series(list)
		if err != nil {
			return nil, nil, err
		}
		if v.redact != 0 {
			return export.Redact(drawn, v.redact), nil, nil
		}
		var judged []input.Input
		for _, f := range list {
			judged = append(judged, byPath[f.Name])
		}
		return drawn, judged, nil
	}}
}

// source is a file. Where the page is redacted, only snapshots are shown.
func (v *viewed) source(f *input.File) engine.Source {
	return engine.Source{Path: v.displayName(f.Path), Size: f.Size, Named: f.Named && v.redact == 0, Read: func(ctx context.Context, progress func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		v.g.spare(f.Size)
		s, beside, err := v.read(ctx, f, progress)
		if err != nil && ctx.Err() == nil {
			v.skipper.skip(f, err)
		}
		if v.redact == 0 || ctx.Err() != nil {
			return s, beside, err
		}
		if s == nil { // an error names the file
			return nil, nil, snapshot.ErrNotSnapshot
		}
		return export.Redact(s, v.redact), nil, nil
	}}
}

func (v *viewed) read(ctx context.Context, f *input.File, progress func(int64)) (*snapshot.Snapshot, []input.Input, error) {
	if !f.Named && f.IsRecording() {
		return nil, nil, fmt.Errorf("%s: the recording of a trace or a watch is viewed on its own", f.Path)
	}
	f.Progress = progress
	in, err := f.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, beside, err := engine.Shown(in)
	switch {
	case err != nil:
		return nil, nil, err
	case s == nil && v.redact != 0:
		return nil, nil, notSnapshot(in)
	}
	v.partial = v.g.partial(in) || v.partial
	return s, beside, nil
}

// displayName returns the page's name for a file. Where it is redacted, the folder of
// all files is left out.
func (v *viewed) displayName(path string) string {
	if v.redact == 0 {
		return path
	}
	folder := filepath.Dir(path)
	for _, f := range v.files.List {
		for folder != "." && folder != "/" && !strings.HasPrefix(f.Path, folder+string(filepath.Separator)) {
			folder = filepath.Dir(folder)
		}
	}
	if short, err := filepath.Rel(folder, path); err == nil {
		return short
	}
	return filepath.Base(path)
}

// reportSkipped reports which files were skipped because nothing about them looks like a
// snapshot.
func (v *viewed) reportSkipped() {
	if others := slices.Concat(v.skipper.others, v.skipper.files.Passed); len(others) > 0 {
		v.g.warn("skipped %s", otherFiles(others))
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

// tunnel is the command that makes a port of this machine one of the user's. The address
// and port of the server are those that the user's ssh reached, if it did.
func tunnel(port int, getenv func(string) string) string {
	host, option := "HOST", ""
	if name, err := os.Hostname(); err == nil {
		host = name
	}
	if c := strings.Fields(getenv("SSH_CONNECTION")); len(c) == 4 { // client, its port, server, its port
		reached, err := netip.ParseAddr(c[2])
		through, wrong := strconv.ParseUint(c[3], 10, 16)
		if err == nil && wrong == nil {
			host = reached.String()
			if through != 22 {
				option = fmt.Sprintf("-p %d ", through)
			}
		}
	}
	if u, err := user.Current(); err == nil {
		host = u.Username + "@" + host
	}
	return fmt.Sprintf("ssh -N %s-L %d:127.0.0.1:%d %s", option, port, port, host)
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
