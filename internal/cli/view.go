package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strandline/snapshot"
	"strandline/web"
	"strandline/web/engine"
)

type viewOptions struct {
	noOpen bool
	listen string
}

func newView(g *globals) *cobra.Command {
	var o viewOptions
	c := &cobra.Command{
		Use:   "view FILE|DIR…",
		Short: "Look at snapshots in the browser",
		Long: `Open a page that shows what was live at each event, by line of code: what never
goes away, what grows, what stands in the peak, and the allocator's segments.

The page is served to this machine alone, until the command is interrupted; its
address, with a secret, stands on the first line of output. It is up at once and
files are read behind it. A directory stands for all snapshots below it.

On a remote machine, --listen chooses the port and prints the command that makes
it reachable from yours.`,
		Example: `  strandline view step-2.pickle step-3.pickle step-4.pickle
  strandline view dumps/
  strandline view oom.pickle --listen 8080         on a remote machine
  strandline view oom.pickle --no-open`,
		Args: files(1, true, "snapshots, or directories of them"),
		RunE: func(c *cobra.Command, args []string) error { return runView(c, g, o, args) },
	}
	c.Flags().BoolVar(&o.noOpen, "no-open", false, "do not open the browser")
	c.Flags().StringVar(&o.listen, "listen", "", "serve on `PORT`, and print how to reach it from elsewhere")
	return c
}

func runView(c *cobra.Command, g *globals, o viewOptions, args []string) error {
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	sources, err := g.sources(args)
	if err != nil {
		return err
	}
	l, err := listen(o.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	e := engine.New(sources)
	port := l.Addr().(*net.TCPAddr).Port
	s := web.New(e, port)
	s.Pack = o.listen != ""
	fmt.Fprintln(g.env.Stdout, s.URL())
	if o.listen != "" {
		fmt.Fprintf(g.env.Stderr, "strandline: from your machine: %s\n", tunnel(port))
	}
	if !o.noOpen {
		browse(s.URL())
	}
	done := make(chan error, 1)
	go func() {
		err := e.Load(ctx)
		debug.FreeOSMemory() // what reading left behind
		if err != nil {
			stop()
		}
		done <- err
	}()
	if err := s.Serve(ctx, l); err != nil {
		return err
	}
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // interrupting it is how a user ends it
}

// sources are the files to view, directories replaced by what is below them.
func (g *globals) sources(args []string) ([]engine.Source, error) {
	paths, named, err := expand(args)
	if err != nil {
		return nil, err
	}
	var out []engine.Source
	for _, p := range paths {
		source := engine.Source{Path: p, Named: named[p]}
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			source.Size = info.Size()
		}
		source.Read = func(progress func(int64) error) (*snapshot.Snapshot, error) {
			g.spare(source.Size)
			s, err := snapshot.Open(p, snapshot.Options{Size: source.Size, Progress: progress})
			if err != nil {
				g.warn("skipped %s", said(err))
				return nil, err
			}
			g.partial(s)
			return s, nil
		}
		out = append(out, source)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no files in %s", strings.Join(args, ", "))
	}
	return out, nil
}

// listen takes a port of this machine, any if none is asked for.
func listen(where string) (net.Listener, error) {
	port := 0
	if where != "" {
		n, err := strconv.ParseUint(where, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("--listen %q: want a port, such as 8080; the page is served to this machine alone", where)
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

// browse opens an address in the user's browser, if there is one.
func browse(url string) {
	command := []string{"xdg-open", url}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open", url}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	}
	exec.Command(command[0], command[1:]...).Start()
}
