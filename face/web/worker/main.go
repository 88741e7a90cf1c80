//go:build js && wasm

// Command worker is the engine behind the page where there is no server: it runs
// in a worker of the browser, reads the files that the page hands over, and
// answers questions that come as messages.
//
// To it: {files, paths, named} to open files, or {plan, model} for the form of plans, the
// latter null or the config.json of a model with its path, then {id, name, query} for a
// question and {id} to give one up. From it: {ready} when it listens, {opened} with the
// document that shows the files or {refused} with the reason, {id, status, type, body} for an
// answer, {problem} if no file could be read.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"syscall/js"
	"time"

	"strandline/examples"
	"strandline/face/web/engine"
	"strandline/input"
	"strandline/plan/model"
	"strandline/run/planner"
)

func main() {
	debug.SetMemoryLimit(3 << 30) // a program in a browser has 4 GiB
	w := worker{asked: map[int]context.CancelFunc{}, ready: make(chan struct{})}
	js.Global().Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		w.receive(args[0].Get("data"))
		return nil
	}))
	post(map[string]any{"ready": true})
	w.warm()
	select {}
}

// A worker is the engine and its pending questions. All of it runs on one thread.
type worker struct {
	begun     bool // something came to be shown
	asker     engine.Asker
	ready     chan struct{} // closed once there is an asker
	stop      func()        // the reading of its files
	asked     map[int]context.CancelFunc
	lastAsked time.Time // of the last question
}

// warm reads an example until files come, since a browser compiles functions well only after
// they ran for a while: the first large file is shown 0.2 s sooner.
func (w *worker) warm() {
	const rounds = 12
	source := input.Source{Path: "example.pickle", Size: int64(len(examples.Leak)), Named: true, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(examples.Leak)), nil
	}}
	for range rounds {
		time.Sleep(time.Millisecond) // messages come in
		if w.begun {
			return
		}
		if p, err := engine.Open(context.Background(), input.Of([]input.Source{source}, input.Options{}), engine.Options{}); err == nil {
			p.Load(context.Background())
		}
	}
}

// receive handles a message. What may take long runs in the background.
func (w *worker) receive(m js.Value) {
	w.begun = w.begun || m.Get("id").IsUndefined()
	if m.Get("plan").Truthy() {
		w.asker = planned(m.Get("model"))
		close(w.ready)
		return
	}
	if files := m.Get("files"); !files.IsUndefined() {
		from := input.Of(sources(files, m.Get("paths"), m.Get("named")), input.Options{})
		go w.open(from)
		return
	}
	id := m.Get("id").Int()
	if name := m.Get("name"); !name.IsUndefined() {
		ctx, stop := context.WithCancel(context.Background())
		ctx = &polite{Context: ctx, rested: time.Now()}
		w.asked[id] = stop
		w.lastAsked = time.Now()
		go w.answer(ctx, id, name.String(), m.Get("query").String())
	} else if stop := w.asked[id]; stop != nil {
		stop()
	}
}

// planned answers the form of plans, of well-known models and of one that the page
// handed over.
func planned(own js.Value) *planner.Page {
	if !own.Truthy() {
		return planner.NewPage("", nil)
	}
	config := []byte(own.Get("text").String())
	return planner.NewPage(own.Get("path").String(), func(name, quant string) (*model.Model, error) {
		return model.Parse(name, config, quant)
	})
}

// open finds the page of files, and reads them. Their beginnings are looked at, which must
// wait for the browser. The page that was open before stays open where there is none.
func (w *worker) open(files *input.Files) {
	ctx, stop := context.WithCancel(context.Background())
	p, err := engine.Open(ctx, files, engine.Options{})
	if err != nil {
		stop()
		post(map[string]any{"refused": err.Error()})
		return
	}
	if w.stop != nil {
		w.stop()
	}
	if e, ok := p.Asker.(*engine.Engine); ok {
		e.Pause = w.pause
	}
	first := w.asker == nil
	w.asker, w.stop = p.Asker, stop
	if first {
		close(w.ready)
	}
	post(map[string]any{"opened": p.Index})
	if err := p.Load(ctx); errors.Is(err, engine.ErrNothing) { // problems with single files are in the session
		post(map[string]any{"problem": err.Error()})
	}
}

func (w *worker) answer(ctx context.Context, id int, name, query string) {
	defer func() {
		w.asked[id]()
		delete(w.asked, id)
	}()
	params, err := url.ParseQuery(query)
	if err != nil {
		panic(fmt.Sprintf("the page asks %s?%s: %v", name, query, err))
	}
	<-w.ready
	a := w.asker.Ask(ctx, name, params)
	if ctx.Err() != nil {
		return // no one waits for it
	}
	body := js.Global().Get("Uint8Array").New(len(a.Body))
	js.CopyBytesToJS(body, a.Body)
	buffer := body.Get("buffer")
	post(map[string]any{"id": id, "status": a.Status, "type": a.Type, "body": buffer}, buffer)
}

// post sends a message to the page, and hands over the buffers.
func post(message map[string]any, buffers ...any) {
	js.Global().Call("postMessage", message, buffers)
}

// pause gives the thread to questions: for a moment, and as long as they keep
// coming. Between messages only other goroutines run, so it must sleep.
func (w *worker) pause() {
	const moment, most = 15 * time.Millisecond, 250 * time.Millisecond
	for began := time.Now(); ; {
		time.Sleep(moment)
		if time.Since(w.lastAsked) > moment || time.Since(began) > most {
			return
		}
	}
}

// A polite context lets messages in when it is asked whether it has ended: so a
// long answer, such as runs under other settings, can be abandoned, and short
// ones do not wait for it.
type polite struct {
	context.Context
	rested time.Time
}

func (p *polite) Err() error {
	const often = 30 * time.Millisecond
	if time.Since(p.rested) > often {
		time.Sleep(time.Millisecond)
		p.rested = time.Now()
	}
	return p.Context.Err()
}

// sources are the files that the page hands over.
func sources(files, paths, named js.Value) (out []input.Source) {
	for i := range files.Length() {
		file := files.Index(i)
		size := int64(file.Get("size").Float())
		out = append(out, input.Source{
			Path: paths.Index(i).String(), Size: size, Named: named.Index(i).Bool(), Changed: time.UnixMilli(int64(file.Get("lastModified").Float())),
			Open: func() (io.ReadCloser, error) {
				return io.NopCloser(&reader{file: file, size: size}), nil
			},
		})
	}
	return out
}
