// Package cli is the command line: one file per command, flags in, findings out.
// The whole program is the function [Main], which gets its environment as an
// [Env], so that tests can run it in-process.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/internal/safefile"
	"strandline/units"
)

// The exit codes of every command.
const (
	exitOK          = 0   // done, nothing wrong found
	exitProblem     = 1   // a finding of severity problem
	exitUsage       = 2   // usage, or input that cannot be read
	exitPartial     = 3   // input only partly readable; 1 wins over it
	exitCommand     = 4   // the command under check failed for its own reasons
	exitCannotJudge = 125 // too little to judge
	exitInterrupted = 130
)

// Env is the program's environment: arguments, streams, terminal, variables. Outside of
// this package it is only that of [Process].
type Env struct {
	args           []string // without the program's name
	stdin          io.Reader
	stdout, stderr io.Writer
	// Whether the outputs are terminals.
	stdoutTerminal, stderrTerminal bool
	stdinPiped                     bool // stdin is a pipe or a file
	width                          int  // of the terminal in columns, 0 if unknown
	// size is how large the terminal is now; 0 where that is unknown.
	size func() (columns, rows int)
	// configDir is the user's folder of configurations; "" if there is none.
	configDir string
	getenv    func(string) string
	context   context.Context
}

// Process is the Env of the running process.
func Process() *Env {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	size := func() (columns, rows int) { return terminalSize(os.Stdout) }
	width, _ := size()
	configDir, _ := os.UserConfigDir() // without a home there is none
	return &Env{
		args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		stdoutTerminal: isTerminal(os.Stdout), stderrTerminal: isTerminal(os.Stderr),
		stdinPiped: isPiped(os.Stdin), width: width, size: size, configDir: configDir, getenv: os.Getenv, context: ctx,
	}
}

// isTerminal reports whether a file is a terminal: other devices, such as /dev/null, are
// not.
func isTerminal(f *os.File) bool { return term.IsTerminal(f.Fd()) }

// isPiped reports whether a file is a pipe, a socket or a regular file, and so not what a
// terminal or a service has for want of input.
func isPiped(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0)
}

// readsStandardInput has a command that is given no file read what is piped into it.
func (g *globals) readsStandardInput(c *cobra.Command) {
	check, run := c.Args, c.RunE
	input := func(c *cobra.Command, args []string) []string {
		if len(args) > 0 || !g.env.stdinPiped || check(c, args) == nil {
			return args
		}
		piped := bufio.NewReader(g.env.stdin)
		if _, err := piped.Peek(1); err != nil { // a program that has nothing to say starts this one
			return args
		}
		g.env.stdin = piped
		return []string{"-"}
	}
	c.Args = func(c *cobra.Command, args []string) error { return check(c, input(c, args)) }
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, input(c, args)) }
}

// exit is an error that ends a command with its own exit code, after it has
// printed everything.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// globals are the flags of every command.
type globals struct {
	env        *Env
	json       bool
	printing   printing
	root       *cobra.Command
	config     *config
	cpuProfile string
	profiled   *safefile.Output // the profile
	// interrupted is done when the program is.
	interrupted context.Context
	unfinished  unfinished
	later       []string    // warnings to print at the end
	concludes   atomic.Bool // the command prints what it has when it is interrupted
	// alike counts what is said of files, by format.
	alike struct {
		sync.Mutex
		times map[string]int
	}
}

// Main runs the program and returns its exit code.
func Main(env *Env) int {
	g := &globals{env: env}
	ctx := env.context
	if ctx == nil {
		ctx = context.Background()
	}
	err := g.run(ctx, func(ctx context.Context) error {
		root := newRoot(g)
		g.root = root
		root.SetArgs(env.args)
		root.SetIn(env.stdin)
		root.SetOut(g.env.stdout)
		root.SetErr(g.env.stderr)
		return root.ExecuteContext(ctx)
	})
	for _, text := range g.later {
		g.warn("%s", text)
	}
	g.sayAlike()
	if pprof.StopCPUProfile(); g.profiled != nil {
		err = cmp.Or(err, g.profiled.Commit())
	}
	var code exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(env.stderr, "strandline: interrupted")
		return exitInterrupted
	}
	if slices.Contains(env.args, "--json") { // also where reading the flags failed before it
		g.json = true
	}
	g.fail(usageError(g.root, err))
	return exitUsage
}

// fail prints an error to stderr, as JSON if --json was given.
func (g *globals) fail(err error) {
	if g.json {
		report.JSONLine(g.env.stderr, api.Error{Schema: api.ErrorSchema, Error: describe(err)})
		return
	}
	fmt.Fprintf(g.env.stderr, "strandline: %s\n", report.Line(describe(err)))
}

// describe formats an error for a person: a file that cannot be opened is named
// first, and the name of the system call is left out.
func describe(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) && err == error(file) {
		return file.Path + ": " + file.Err.Error()
	}
	return strings.TrimSpace(err.Error())
}

func (g *globals) warn(format string, args ...any) {
	if g.printing.quiet {
		return
	}
	fmt.Fprintf(g.env.stderr, "strandline: %s\n", report.Line(fmt.Sprintf(format, args...)))
}

// maxAlike is how many files are named for one reason: a folder can have tens of thousands.
const maxAlike = 20

// warnOfFile is warn about one of many files. Those beyond a bound are counted, and
// [globals.sayAlike] says how many there were.
func (g *globals) warnOfFile(format string, args ...any) {
	g.alike.Lock()
	defer g.alike.Unlock()
	if g.alike.times == nil {
		g.alike.times = map[string]int{}
	}
	if g.alike.times[format]++; g.alike.times[format] <= maxAlike {
		g.warn(format, args...)
	}
}

// sayAlike says of how many more files the same was to be said.
func (g *globals) sayAlike() {
	g.alike.Lock()
	defer g.alike.Unlock()
	for _, format := range slices.Sorted(maps.Keys(g.alike.times)) {
		if more := g.alike.times[format] - maxAlike; more > 0 {
			g.warn("%s", units.Plural(int64(more), "more file")+": "+strings.ReplaceAll(format, "%s", "…"))
		}
	}
	g.alike.times = nil
}

// files accepts n or more arguments where many is true, otherwise exactly one; what
// describes them.
func files(n int, many bool, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return fmt.Errorf("no file given; %s takes %s; see `%s --help`", c.Name(), what, c.CommandPath())
		case len(args) > n && !many:
			return fmt.Errorf("%s takes %s; got %d", c.Name(), what, len(args))
		}
		return nil
	}
}

// print writes a document as JSON or as text.
func (g *globals) print(doc any, text func(w io.Writer, s report.Style)) error {
	if g.json {
		return report.JSON(g.env.stdout, doc)
	}
	text(g.text(), g.style())
	return nil
}
