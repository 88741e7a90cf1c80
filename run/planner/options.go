// Package planner plans what the flags of `strandline plan` ask for: it holds the
// flags, and turns them into the document that the command prints and that the form of
// the page shows. It reads no file.
package planner

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/model"
	"strandline/units"
)

// Models finds a model by its name. Quant is a format of the weights other than its
// own, or "".
type Models func(name, quant string) (*model.Model, error)

// Flags are the flags of one kind of plan.
type Flags struct {
	*pflag.FlagSet
	Choices map[string]func() []string // the values that are offered, by flag
}

// A Document is a plan, or the answer to a question about plans. As JSON it is one of
// the documents of [strandline/face/api].
type Document interface {
	Text(io.Writer, report.Style)
	Markdown(io.Writer)
}

// A Kind is a kind of plan with its flags.
type Kind interface {
	// Flags are the flags, which set the kind when they are parsed.
	Flags() *Flags
	// Plan returns the plan that the flags ask for, and whether anything fits.
	Plan(find Models) (doc Document, fits bool, err error)
}

func newFlags() *Flags {
	f := &Flags{FlagSet: pflag.NewFlagSet("plan", pflag.ContinueOnError), Choices: map[string]func() []string{}}
	f.SortFlags = true
	return f
}

// A sizeFlag is a number of bytes, which may be given with a unit.
type sizeFlag int64

func (s *sizeFlag) String() string { return strconv.FormatInt(int64(*s), 10) }
func (s *sizeFlag) Type() string   { return "size" }

func (s *sizeFlag) Set(text string) error {
	n, err := units.ParseBytes(text)
	if err == nil {
		*s = sizeFlag(n)
	}
	return err
}

// offer sets the values that are offered for a flag.
func (f *Flags) offer(name string, values ...string) {
	f.Choices[name] = func() []string { return values }
}

// Options are the flags that all kinds have: of the model and of the GPUs.
type Options struct {
	Model, Quant  string
	GPU, Capacity string
	GPUs          int64
}

func (o *Options) add(f *Flags) {
	f.StringVar(&o.Model, "model", "", "the `NAME` of a built-in model, a folder, a config.json or a GGUF file")
	f.StringVar(&o.Quant, "quant", "", "plan the weights in `FORMAT`: "+strings.Join(quantFormats(), ", "))
	f.StringVar(&o.GPU, "gpu", "", "the `NAME` of the GPU, such as H200")
	f.Int64Var(&o.GPUs, "gpus", 1, "number `N` of GPUs")
	f.StringVar(&o.Capacity, "capacity", "", "GPU memory `SIZE` as the driver reports it, in place of the table's")
	f.Choices["quant"], f.Choices["gpu"], f.Choices["model"] = quantFormats, plan.GPUs, model.Catalog
}

// read finds the model and the GPU.
func (o *Options) read(find Models) (*model.Model, *plan.GPU, error) {
	if o.Model == "" {
		return nil, nil, errors.New("no --model given; `strandline plan models` lists the built-in ones")
	}
	m, err := find(o.Model, o.Quant)
	if err != nil {
		return nil, nil, err
	}
	gpu, err := o.Device()
	return m, gpu, err
}

// Device is the GPU that the flags name.
func (o *Options) Device() (*plan.GPU, error) {
	if o.GPUs < 1 {
		return nil, fmt.Errorf("--gpus %d: want a number above 0", o.GPUs)
	}
	var size int64
	if o.Capacity != "" {
		var err error
		if size, err = units.ParseBytes(o.Capacity); err != nil || size <= 0 {
			return nil, fmt.Errorf("--capacity %q is not a size", o.Capacity)
		}
	}
	if o.GPU == "" {
		if size == 0 {
			return nil, errors.New("neither --gpu nor --capacity given, such as --gpu RTX-4090 or --capacity 16GiB; `strandline plan gpus` lists the known GPUs")
		}
		return &plan.GPU{Name: "GPU", Total: size, Board: size, Source: "given"}, nil
	}
	g, err := plan.FindGPU(o.GPU)
	if err != nil || size == 0 {
		return g, err
	}
	own := *g
	own.Total, own.Source = size, "total: given"
	return &own, nil
}

// quantFormats and kvTypes are those that are offered; others are known, too.
func quantFormats() []string {
	return strings.Fields("bf16 fp8 fp8-block int8 int4 awq gptq nf4 mxfp4 nvfp4")
}

func kvTypes() []string { return strings.Fields("auto bf16 fp16 fp8 int8 nvfp4 q8_0 q4_0") }

func optimizers() []string {
	return strings.Fields("adamw adamw-bf16 adamw-8bit paged-adamw-8bit muon sgd")
}
