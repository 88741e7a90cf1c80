package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strandline/input"
	"strings"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/plan/serving"
	"strandline/plan/training"
	"strandline/torch/purpose"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// planCheck checks a log of an engine against the plan of its set-up.
func (g *globals) planCheck(ctx context.Context, o *servingPlan) error {
	log, err := g.observed(ctx, o.check)
	if err != nil {
		return err
	}
	if o.Model == "" {
		if o.Model = log.Setup["model"]; o.Model == "" {
			return g.logAlone(o, log, errors.New("the log does not name the model; give --model"))
		}
	}
	if o.Quant == "" {
		if o.Quant, err = fileType(o.Model, log); err != nil {
			return err
		}
	}
	m, err := loggedModel(o.Model, o.Quant, log.Setup["quant"])
	if err != nil {
		return g.logAlone(o, log, fmt.Errorf("%w; --model gives the model of the log", err))
	}
	s, err := o.Given(m)
	if err != nil {
		return err
	}
	other := log.Engine == engine.TensorRT || log.Engine == engine.LlamaCPP
	e, ok := engine.ParseRelease(o.Engine, o.Version)
	if other {
		s.Engine.Name = log.Engine
	} else if log.Engine == "" || o.Version != "" {
		if !ok {
			return fmt.Errorf("unknown --engine %q: want vllm or sglang", o.Engine)
		}
		s.Engine = e
	}
	if o.GPU != "" || o.Capacity != "" {
		if s.GPU, err = o.Device(); err != nil {
			return err
		}
	}
	kv := o.KV
	if kv == "" {
		kv = log.Setup["kv_dtype"]
	}
	if s.KV, ok = serving.ParseKV(kv, m); !ok {
		return fmt.Errorf("unknown type %q of keys and values; give --kv-dtype", kv)
	}
	s, assumed := s.From(log).Spread(log, o.GPUs)
	check := s.Check
	if other {
		check = s.CheckOther
	}
	rows, err := check(log)
	if err != nil {
		return fmt.Errorf("%s: %w", o.check, err)
	}
	setup := s.Engine.String()
	if s.Parallel.TP*s.Parallel.PP > 1 {
		setup += fmt.Sprintf(", TP %d, PP %d", s.Parallel.TP, max(s.Parallel.PP, 1))
	}
	doc := report.Checked{Checked: api.NewChecked(o.check, m, setup, rows)}
	if doc.Notes = append(doc.Notes, serving.CheckNotes(log)...); assumed != "" {
		doc.Notes = append(doc.Notes, assumed)
	}
	if f := log.Failure; f != nil {
		doc.Failure = &api.CheckedFailure{Line: f.Line, Text: f.Quote}
	}
	return o.strictly(rows, g.printPlan(o.markdown, doc))
}

// logAlone prints what a log states where its model is not known, and why nothing is
// compared; without a figure that is the error.
func (g *globals) logAlone(o *servingPlan, log *engine.Log, why error) error {
	rows := serving.Breakdown(log)
	if len(rows) == 0 {
		return why
	}
	doc := report.Checked{Checked: api.NewChecked(o.check, nil, strings.TrimSpace(log.Engine+" "+log.Version), rows)}
	doc.Notes = append(serving.CheckNotes(log), "nothing is compared: "+why.Error())
	if f := log.Failure; f != nil {
		doc.Failure = &api.CheckedFailure{Line: f.Line, Text: f.Quote}
	}
	if err := g.printPlan(o.markdown, doc); err != nil {
		return err
	}
	return exit(exitPartial)
}

// fileType is the format of a GGUF file that llama.cpp names, "" where it names none
// or the file itself is given.
func fileType(name string, log *engine.Log) (string, error) {
	text := strings.ToLower(log.Setup["file_type"])
	quant, _, _ := strings.Cut(strings.NewReplacer(" - medium", "_m", " - small", "_s", " - large", "_l").Replace(text), " ")
	switch {
	case text == "" || model.IsGGUF(name):
		return "", nil
	case strings.HasPrefix(quant, "f16"), strings.HasPrefix(quant, "bf16"):
		return "bf16", nil
	case !model.KnownQuant(quant):
		return "", fmt.Errorf("the log is of a file in the format %s; give the GGUF file itself as --model", log.Setup["file_type"])
	}
	return quant, nil
}

// strictly is the end of a check: with --strict, memory beyond the plan is a problem.
func (o *planFlags) strictly(rows []plan.Checked, err error) error {
	over := slices.ContainsFunc(rows, func(c plan.Checked) bool { return c.Over() })
	return fitting(!o.strict || !over, err)
}

// loggedModel is the model that a log names, maybe by a folder of another machine,
// with the quantization that the engine names where it is one that is known.
func loggedModel(name, quant, engine string) (*model.Model, error) {
	if _, err := os.Stat(name); err != nil { // llama.cpp prints descriptive names
		name = strings.ReplaceAll(name, " ", "-")
	}
	if quant == "" && model.KnownQuant(engine) {
		quant = engine
		if own, err := loadModel(name, ""); err == nil && strings.HasPrefix(own.Quant, engine) { // the method of the files, with its details
			quant = ""
		}
	}
	m, err := loadModel(name, quant)
	if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	m, err = model.Find(model.FolderName(name), quant)
	if err == nil {
		m.Notes = append(m.Notes, "the log names a folder that is not here; the model is inferred from its name")
	}
	return m, err
}

// observed returns what a snapshot of an engine or its log states.
func (g *globals) observed(ctx context.Context, path string) (*engine.Log, error) {
	s, log, err := g.snapshotOrLog(ctx, path)
	if s == nil {
		return log, err
	}
	peak := highest(s)
	figures := map[string]engine.Stated{}
	for name, of := range map[string][]purpose.Purpose{
		engine.Weights: {purpose.Parameters}, engine.KV: {purpose.KVCache}, engine.Activation: {purpose.Activations, purpose.Temporaries},
	} {
		for _, p := range of {
			if n := peak.By[p]; n > 0 {
				figures[name] = engine.Stated{Size: figures[name].Size + n}
			}
		}
	}
	return &engine.Log{Setup: map[string]string{}, Ranks: []engine.Rank{{Figures: figures}}}, nil
}

// snapshotOrLog reads a snapshot, or the log of an engine. A line of a log may begin as a list
// of JSON or as a pickle does.
func (g *globals) snapshotOrLog(ctx context.Context, path string) (*snapshot.Snapshot, *engine.Log, error) {
	f, err := g.openFile(path, "")
	if err != nil {
		return nil, nil, err
	}
	var notSnapshot error
	if path != "-" {
		in, err := f.ReadAs(ctx, input.SnapshotOrLog)
		if err != nil {
			return nil, nil, err
		}
		if s, ok := in.(*input.Snapshot); ok {
			g.partial(s)
			return s.Snapshot, nil, nil
		}
		notSnapshot = in.(*input.Unknown).Err
	}
	log, err := f.EngineLog(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case notSnapshot == nil || errors.Is(notSnapshot, snapshot.ErrNotSnapshot):
		return nil, log, err
	case err == nil && len(log.Ranks) == 0 && !f.NamedAsSnapshot(): // "[TensorRT-LLM][INFO] …" begins as a list does
		return nil, nil, fmt.Errorf("%s: this text contains no figure of a supported engine (vLLM, SGLang, TensorRT-LLM, llama.cpp) or trainer (torchtitan, verl)", path)
	case err != nil || len(log.Ranks) == 0:
		return nil, nil, notSnapshot
	}
	return nil, log, nil
}

// highest is the highest peak of a snapshot's devices.
func highest(s *snapshot.Snapshot) (most purpose.Moment) {
	for _, d := range s.Devices() {
		if d.Index == snapshot.Host {
			continue
		}
		if m := purpose.Of(timeline.New(s, d)); m.Peak.Bytes > most.Bytes {
			most = m.Peak
		}
	}
	return most
}

// planCheckStep checks a snapshot, or the log of a trainer, against the plan of a
// training step.
func (g *globals) planCheckStep(ctx context.Context, o *planFlags, t training.Setup, path, setup string) error {
	rows, err := g.checkedStep(ctx, t, path)
	if err != nil {
		return err
	}
	doc := report.Checked{Checked: api.NewChecked(path, t.Model, setup, rows)}
	return o.strictly(rows, g.printPlan(o.markdown, doc))
}

func (g *globals) checkedStep(ctx context.Context, t training.Setup, path string) ([]plan.Checked, error) {
	s, log, err := g.snapshotOrLog(ctx, path)
	if err != nil {
		return nil, err
	}
	if s == nil {
		rows, err := t.CheckLog(log)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return rows, nil
	}
	peak := highest(s)
	rows, err := t.CheckStep(peak.By.Map())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}
