package cli

import (
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
	if len(files.List) == 0 {
		return files.NoSnapshot()
	}
	v := &viewed{g: g, files: files, redact: redacts, skips: files.Skips(redacts != 0)}
	p, err := engine.Open(ctx, files, v.options(o.html == ""))
	if err != nil {
		return err
	}
	if o.html != "" {
		err := p.Load(ctx)
		v.reportSkipped()
		if err == nil {
			err = g.savePage(ctx, o.html, func(w io.Writer) error { return web.Save(ctx, w, p.Asker) })
		}
		return v.end(p, err)
	}
	loaded := make(chan struct{})
	var failed error
	go func() {
		defer close(loaded)
		failed = p.Load(ctx)
		debug.FreeOSMemory() // garbage of reading
		v.reportSkipped()
		if failed != nil {
			stop()
		}
	}()
	if p.Readable != nil && !v.surelyReadable() {
		select {
		case <-p.Readable:
		case <-loaded:
			return v.end(p, failed)
		}
	}
	shown := page{asker: p.Asker, index: p.Index}
	if v.redact == 0 { // what is dropped has names and paths of its own
		shown.files = &showing{files: files, live: written(files.Given), disk: p, now: p, read: loaded}
	}
	if shown.files != nil && shown.files.live {
		markLive(p.Asker, true)
		shown.follow = func() {
			if <-loaded; failed == nil {
				shown.files.follow(ctx)
			}
		}
	}
	if err := g.serve(ctx, o.serve, shown); err != nil {
		return err
	}
	if <-loaded; errors.Is(failed, context.Canceled) {
		failed = nil // interrupting it is how a user ends it
	}
	return v.end(p, failed)
}

// options are what the command does with each file that the page reads.
func (v *viewed) options(serves bool) engine.Options {
	o := engine.Options{Noticed: v.notice, Warn: func(text string) { v.g.warn("%s", text) }}
	switch {
	case v.redact == 0 && serves: // a saved page has no code of others
		o.Code = codeHere
	case v.redact != 0:
		o.Redact = func(s *snapshot.Snapshot) *snapshot.Snapshot { return export.Redact(s, v.redact) }
		o.Name = v.displayName
	}
	if path := v.files.Given[0]; serves && len(v.files.Given) == 1 && path != "-" {
		info, err := os.Stat(v.files.List[0].Path)
		o.Follow = err == nil && info.Mode().IsRegular()
	}
	return o
}

// codeHere reads source code below the current folder.
func codeHere(path string) ([]byte, error) {
	const maxCode = 4 << 20 // bytes
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(here, path); err != nil {
			return nil, err
		}
	}
	if !filepath.IsLocal(path) {
		return nil, errors.New("the source code is not below the current folder")
	}
	folder, err := safefile.OpenFolder(here)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.Read(path, maxCode)
}

// notice reports on a file that was read.
func (v *viewed) notice(f *input.File, in input.Input, err error) {
	v.g.spare(f.Size)
	switch {
	case errors.Is(err, engine.ErrOtherKind):
		v.g.warnOfFile("skipped %s: %v", f.Path, err)
	case err != nil:
		v.skips.Skip(f, err)
	default:
		v.partial = v.g.partial(in) || v.partial
	}
}

// surelyReadable reports whether the file that is read first is a large one named as a snapshot:
// its page is up while it is read.
func (v *viewed) surelyReadable() bool {
	const large = 32 << 20
	return v.files.List[0].NamedAsSnapshot() && v.files.List[0].Size > large
}

// serveOptions are how a page is served.
type serveOptions struct {
	noOpen bool
	listen string
}

// A page is what to serve: its Asker, the file with which it begins, and what its address has
// after #.
type page struct {
	asker        engine.Asker
	index, state string
	files        *showing // takes dropped files, if not nil
	follow       func()   // shows what is written meanwhile, if not nil
}

// serve serves a page until the context is done.
func (g *globals) serve(ctx context.Context, o serveOptions, p page) error {
	l, err := listen(o.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	s := web.New(p.asker, p.index, port)
	remote := o.listen != "" || g.env.getenv("SSH_CONNECTION") != ""
	s.Pack = remote
	if p.files != nil {
		p.files.show = s.Show
		s.Open = func(dropped []input.Source) (int, error) { return p.files.drop(ctx, dropped) }
	}
	if p.follow != nil {
		go p.follow()
	}
	address := s.URL() + p.state
	fmt.Fprintln(g.env.stdout, address)
	if remote {
		fmt.Fprintf(g.env.stderr, "strandline: from your machine: %s\n", tunnel(port, g.env.getenv))
	}
	if !o.noOpen && g.env.getenv("SSH_CONNECTION") == "" {
		defer browse(s.Once() + p.state)()
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
	redact  export.Redaction
	partial bool
	skips   *input.Skips
}

// end returns how viewing ends, by the error of loading.
func (v *viewed) end(p *engine.Page, err error) error {
	if w, ok := p.Asker.(*engine.Watch); ok && err == nil && w.Partial() != nil {
		v.g.warn("the recording is only partly readable: %v; the rest is shown", w.Partial())
		v.partial = true
	}
	switch {
	case errors.Is(err, engine.ErrNothing):
		return v.files.NoSnapshot()
	case err == nil && v.partial:
		return exit(exitPartial)
	}
	return err
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
	if others := v.skips.Others(); others != "" {
		v.g.warn("skipped %s", others)
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
