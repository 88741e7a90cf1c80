//go:build js && wasm

// Command worker is the engine behind the page where there is no server: it runs
// in a worker of the browser, reads the files that the page hands over, and
// answers questions that come as messages.
//
// To it: {files, paths, named, recording} once, the last if the file is the
// recording of a trace, or {plan, model} for the form of plans, the latter null or the
// config.json of a model with its path, then {id, name, query} for a
// question and {id} to give one up. From it: {ready} when it listens, {id, status, type,
// body} for an answer, {problem} if no file could be read.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"syscall/js"
	"time"

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
	select {}
}

// An asker is the engine of the files that were handed over, or the planner.
type asker interface {
	Ask(ctx context.Context, name string, params url.Values) engine.Answer
}

// A worker is the engine and its pending questions. All of it runs on one thread.
type worker struct {
	asker     asker
	ready     chan struct{} // closed once there is an asker
	asked     map[int]context.CancelFunc
	lastAsked time.Time // of the last question
}

// receive handles a message. What may take long runs in the background.
func (w *worker) receive(m js.Value) {
	if m.Get("plan").Truthy() {
		w.asker = planned(m.Get("model"))
		close(w.ready)
		return
	}
	if files := m.Get("files"); !files.IsUndefined() {
		from := input.Of(sources(files, m.Get("paths"), m.Get("named")), input.Options{})
		if m.Get("recording").Truthy() {
			go w.loadRecording(from)
			return
		}
		go w.load(from)
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

// load orders and reads the files. Their beginnings are looked at for their order, which must
// wait for the browser.
func (w *worker) load(files *input.Files) {
	e := engine.New(files, engine.Sources(files))
	e.Pause = w.pause
	w.asker = e
	close(w.ready)
	err := e.Load(context.Background())
	if errors.Is(err, engine.ErrNothing) { // problems with single files are in the session
		post(map[string]any{"problem": err.Error()})
	}
}

// loadRecording reads the recording of a trace, which answers once it is read.
func (w *worker) loadRecording(files *input.Files) {
	in, err := files.List[0].Read(context.Background())
	switch in := in.(type) {
	case *input.Trace:
		w.asker = engine.NewRecording(files, in)
	case *input.Unknown:
		w.asker = broken{in.Err}
	default:
		w.asker = broken{cmp.Or(err, fmt.Errorf("%s is not the recording of a trace", files.Given[0]))}
	}
	close(w.ready)
}

// broken answers all questions with an error.
type broken struct{ err error }

func (b broken) Ask(context.Context, string, url.Values) engine.Answer {
	body, _ := json.Marshal(map[string]string{"error": b.err.Error()})
	return engine.Answer{Status: 422, Type: "application/json", Body: body}
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
