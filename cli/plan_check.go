package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/internal/packed"
	enginelog "strandline/logs/engine"
	"strandline/logs/text"
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
			return errors.New("the log does not name the model; give --model")
		}
	}
	if o.Quant == "" {
		if o.Quant, err = fileType(o.Model, log); err != nil {
			return err
		}
	}
	m, err := loggedModel(o.Model, o.Quant, log.Setup["quant"])
	if err != nil {
		return fmt.Errorf("%w; --model gives the model of the log", err)
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
	s = s.From(log)
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
	if f := log.Failure; f != nil {
		doc.Failure = &api.CheckedFailure{Line: f.Line, Text: f.Quote}
	}
	return o.strictly(rows, g.printPlan(o.markdown, doc))
}

// fileType is the format of a GGUF file that llama.cpp names, "" where it names none
// or the file itself is given.
func fileType(name string, log *enginelog.Log) (string, error) {
	text := strings.ToLower(log.Setup["file_type"])
	quant := strings.NewReplacer(" - medium", "_m", " - small", "_s", " - large", "_l", " ", "").Replace(text)
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
	if quant == "" && model.KnownQuant(engine) {
		quant = engine
	}
	if _, err := os.Stat(name); err != nil { // llama.cpp prints descriptive names
		name = strings.ReplaceAll(name, " ", "-")
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
func (g *globals) observed(ctx context.Context, path string) (*enginelog.Log, error) {
	if path == "-" {
		return g.engineLog(ctx, path)
	}
	s, err := g.open(ctx, path)
	if err != nil {
		return g.noSnapshot(ctx, path, err)
	}
	g.partial(s)
	peak := highest(s)
	figures := map[string]enginelog.Stated{}
	for name, of := range map[string][]purpose.Purpose{
		enginelog.Weights: {purpose.Parameters}, enginelog.KV: {purpose.KVCache}, enginelog.Activation: {purpose.Activations, purpose.Temporaries},
	} {
		for _, p := range of {
			if n := peak.By[p]; n > 0 {
				figures[name] = enginelog.Stated{Size: figures[name].Size + n}
			}
		}
	}
	return &enginelog.Log{Setup: map[string]string{}, Ranks: []enginelog.Rank{{Figures: figures}}}, nil
}

// noSnapshot is the log in a file that could not be read as a snapshot for some
// cause. A line of a log may begin as a list of JSON or as a pickle does.
func (g *globals) noSnapshot(ctx context.Context, path string, cause error) (*enginelog.Log, error) {
	log, err := g.engineLog(ctx, path)
	if !errors.Is(cause, snapshot.ErrNotSnapshot) && (err != nil || len(log.Ranks) == 0) {
		if err == nil && !likeSnapshot(path) { // "[TensorRT-LLM][INFO] …" begins as a list does
			return nil, fmt.Errorf("%s: this text contains no figure of a supported engine (vLLM, SGLang, TensorRT-LLM, llama.cpp) or trainer (torchtitan, verl)", path)
		}
		return nil, cause
	}
	return log, err
}

// highest is the highest peak of a snapshot's devices.
func highest(s *snapshot.Snapshot) (most purpose.Moment) {
	for _, d := range s.Devices() {
		if m := purpose.Of(timeline.New(s, d)); m.Peak.Bytes > most.Bytes {
			most = m.Peak
		}
	}
	return most
}

// engineLog reads a log, which may be compressed.
func (g *globals) engineLog(ctx context.Context, path string) (*enginelog.Log, error) {
	bar := progress{g: g, path: path, size: sizeOf(path), began: time.Now()}
	defer bar.clear()
	r, err := g.source(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	unpacked, _, err := packed.Open(bufio.NewReader(&watched{ctx: ctx, r: r, bar: &bar}), bar.size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer unpacked.Close()
	in := bufio.NewReader(unpacked)
	if head, _ := in.Peek(1024); !text.IsText(head) {
		return nil, fmt.Errorf("%s: is neither a snapshot nor text", path)
	}
	log, err := enginelog.Scan(in)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return log, nil
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
	s, err := g.open(ctx, path)
	if err != nil {
		log, err := g.noSnapshot(ctx, path, err)
		if err != nil {
			return nil, err
		}
		rows, err := t.CheckLog(log)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return rows, nil
	}
	g.partial(s)
	peak := highest(s)
	rows, err := t.CheckStep(peak.By.Map())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}
