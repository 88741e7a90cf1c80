package api

import "strandline/plan"

// Plan is the document of `strandline plan` for an inference engine.
type Plan struct {
	Schema     string          `json:"schema"`
	Model      PlannedModel    `json:"model"`
	Engine     string          `json:"engine"`
	GPU        *plan.GPU       `json:"gpu" ts:"set"`
	Parallel   PlannedParallel `json:"parallel"`
	Fraction   float64         `json:"memory_fraction"`
	Verdict    plan.Verdict    `json:"verdict"`
	Binding    string          `json:"binding"`
	Components []PlannedPart   `json:"components"`
	Stages     []PlannedStage  `json:"stages"`
	KV         PlannedKV       `json:"kv"`
	Flags      []string        `json:"flags"`
	Notes      []string        `json:"notes"`
	Latency    *PlannedLatency `json:"latency,omitempty"`
	Formats    []PlannedFormat `json:"formats,omitempty"`
	Host       []PlannedPart   `json:"host,omitempty"`
	Offload    *PlannedOffload `json:"offload,omitempty"`
	Load       *PlannedLoad    `json:"load,omitempty"`
	Images     *PlannedImages  `json:"images,omitempty"`
}

// PlannedModel is the model of a plan.
type PlannedModel struct {
	Name       string   `json:"name"`
	Parameters int64    `json:"parameters"`
	Active     int64    `json:"active_parameters"`
	Layers     int      `json:"layers"`
	Format     string   `json:"format"`
	Checkpoint int64    `json:"checkpoint_bytes"`
	Context    *int64   `json:"context_tokens"`
	Notes      []string `json:"notes"`

	Mixture bool `json:"-"` // of experts, so that fewer parameters are active
}

// PlannedPart is a component of a plan.
type PlannedPart struct {
	Name   string `json:"name"`
	Low    int64  `json:"low_bytes"`
	High   int64  `json:"high_bytes"`
	Source string `json:"source,omitempty"`
}

// PlannedParallel is how the model is divided.
type PlannedParallel struct {
	GPUs int64 `json:"gpus"`
	TP   int64 `json:"tp"`
	PP   int64 `json:"pp"`
	EP   int64 `json:"ep"`
	DP   int64 `json:"dp"`
	// Nodes is how many nodes the ranks take, and Node how many GPUs one has; null
	// where they are not planned.
	Nodes *int64 `json:"nodes"`
	Node  *int64 `json:"gpus_per_node"`
}

// PlannedOffload is how much of a model llama.cpp or Ollama has on GPUs.
type PlannedOffload struct {
	Layers       int64 `json:"gpu_layers"`
	Of           int64 `json:"layers"`
	ExpertLayers int64 `json:"host_expert_layers"`
}

// PlannedLoad is what the requests that were asked for need.
type PlannedLoad struct {
	Requests int64       `json:"requests"`
	Prompt   int64       `json:"prompt_tokens"`
	Output   int64       `json:"output_tokens"`
	KV       int64       `json:"kv_bytes"`
	AtOnce   [2]float64  `json:"at_once"`
	Answer   *[2]float64 `json:"answer_us"`
}

// PlannedImages is what the images of a request take.
type PlannedImages struct {
	Count   int64  `json:"count"`
	Width   int64  `json:"width"`
	Height  int64  `json:"height"`
	Tokens  int64  `json:"image_tokens"`
	Patches int64  `json:"image_patches"`
	Source  string `json:"source"`
	All     int64  `json:"request_tokens"`
	KV      int64  `json:"kv_bytes"`
	AtOnce  int64  `json:"encoded_at_once"`
	Low     int64  `json:"encoder_low_bytes"`
	High    int64  `json:"encoder_high_bytes"`
}

// PlannedStage is a stage of the pipeline.
type PlannedStage struct {
	Layers  int64 `json:"layers"`
	Weights int64 `json:"weights_bytes"`
}

// PlannedKV is what the KV cache holds.
type PlannedKV struct {
	PerToken   float64    `json:"bytes_per_token"`
	InWindow   float64    `json:"window_bytes_per_token"`
	Window     int64      `json:"window_tokens"`
	State      int64      `json:"state_bytes"`
	Block      int64      `json:"block_tokens"`
	BlockBytes int64      `json:"block_bytes"`
	Tokens     [2]int64   `json:"tokens"`
	Length     int64      `json:"length_tokens"`
	Need       int64      `json:"request_bytes"`
	Requests   [2]float64 `json:"requests"`
	Longest    [2]int64   `json:"longest_tokens"`
}

// PlannedLatency is the roofline of a prompt and a step.
type PlannedLatency struct {
	Prompt  int64      `json:"prompt_tokens"`
	Batch   int64      `json:"batch"`
	First   [2]float64 `json:"first_token_us"`
	Token   [2]float64 `json:"token_us"`
	Bound   string     `json:"bound"`
	Assumed string     `json:"assumed"`
}

// PlannedFormat is the same set-up with the weights in another format.
type PlannedFormat struct {
	Format  string       `json:"format"`
	Weights int64        `json:"weights_bytes"`
	Tokens  [2]int64     `json:"tokens"`
	Verdict plan.Verdict `json:"verdict"`
	// GPULayers is of llama.cpp and Ollama.
	GPULayers *int64 `json:"gpu_layers,omitempty"`
}

// TrainPlan is the document of `strandline plan train`.
type TrainPlan struct {
	Schema  string          `json:"schema"`
	Model   PlannedModel    `json:"model"`
	Trainer string          `json:"trainer"`
	GPU     *plan.GPU       `json:"gpu" ts:"set"`
	GPUs    int64           `json:"gpus"`
	Verdict plan.Verdict    `json:"verdict"`
	Peak    PlannedPart     `json:"peak"`
	Outside PlannedPart     `json:"outside"`
	Host    int64           `json:"host_bytes"`
	Stage   int64           `json:"stage"`
	Moments []PlannedMoment `json:"moments"`
	Largest int             `json:"largest"`
	Notes   []string        `json:"notes"`

	Setup string `json:"-"` // the rest of the set-up
}

// PlannedMoment is a moment of a step at which memory may peak, or a phase of it.
type PlannedMoment struct {
	Name  string        `json:"name"`
	Low   int64         `json:"low_bytes"`
	High  int64         `json:"high_bytes"`
	Parts []PlannedPart `json:"components"`
}

// RLPlan is the document of `strandline plan rl`.
type RLPlan struct {
	Schema     string        `json:"schema"`
	Total      int64         `json:"total_bytes"`
	Host       int64         `json:"host_bytes"`
	Components []PlannedPart `json:"components"`
	Ways       []PlannedWay  `json:"ways"`
	Notes      []string      `json:"notes"`
	// Speeds are in bytes per second; null for phases that were read from a file.
	Speeds *PlannedSpeeds `json:"speeds"`
	// Rollouts is null where no prompts are given.
	Rollouts *PlannedRollouts `json:"rollouts"`

	Title string `json:"-"`
	Share string `json:"-"` // the engine's name for its share of the GPU
}

// PlannedSpeeds are what hand-overs are timed with, in bytes per second.
type PlannedSpeeds struct {
	Host float64 `json:"host_link"`
	Link float64 `json:"sync_link"`
	Disk float64 `json:"disk"`
}

// PlannedRollouts is the KV cache that a step's rollouts take on a GPU.
type PlannedRollouts struct {
	Prompts   int64 `json:"prompts"`
	Group     int64 `json:"group"`
	Prompt    int64 `json:"prompt_tokens"`
	Response  int64 `json:"response_tokens"`
	Workers   int64 `json:"engines"`
	Sequences int64 `json:"sequences_per_engine"`
	One       int64 `json:"sequence_bytes"`
	Low       int64 `json:"kv_low_bytes"`
	High      int64 `json:"kv_high_bytes"`
}

// PlannedHandOver is what happens before a phase.
type PlannedHandOver struct {
	Phase   string     `json:"phase"`
	Seconds [2]float64 `json:"seconds"`
	Moves   []string   `json:"moves"`
}

// PlannedWay is a way of sharing the GPU.
type PlannedWay struct {
	Name     string          `json:"name"`
	Verdict  plan.Verdict    `json:"verdict"`
	Fraction *float64        `json:"largest_memory_fraction"`
	KV       *int64          `json:"kv_bytes"`
	Binding  string          `json:"binding"`
	Phases   []PlannedMoment `json:"phases"`
	Highest  int             `json:"highest"`
	// HandOvers are the times between its phases, and Seconds their sum.
	HandOvers []PlannedHandOver `json:"hand_overs"`
	Seconds   *[2]float64       `json:"hand_over_seconds"`
	// AtOnce is how many rollouts of an engine the largest pool holds at once.
	AtOnce *int64 `json:"rollouts_at_once"`
}

// PlanForm is what the page has fields for.
type PlanForm struct {
	Given string                 `json:"given"` // the model that the command named
	Modes map[string][]FormField `json:"modes"`
}

// FormField is a flag as the page needs it.
type FormField struct {
	Name    string   `json:"name"`
	Help    string   `json:"help"`
	Kind    string   `json:"kind" ts:"bool|int64|float64|string"` // as pflag has it: bool, int64, float64, string
	Default string   `json:"default"`
	Choices []string `json:"choices"`
}
