package engine

import "strings"

// engines are those that are known. Sources: vLLM, engine/arg_utils.py and config/; SGLang,
// srt/server_args.py; llama.cpp, common/arg.cpp; Ollama, envconfig/config.go; the engines'
// own logs.
var engines = []Engine{
	{
		Name: VLLM, Planned: true, Begins: []string{"vllm"},
		Programs: []string{"vllm"}, Verbs: []string{"serve"}, Modules: []string{"vllm.entrypoints"},
		Flags: []Flag{
			{Setting: Model, Names: "--model"},
			{Setting: TP, Names: "--tensor-parallel-size --tp"},
			{Setting: PP, Names: "--pipeline-parallel-size --pp"},
			{Setting: DP, Names: "--data-parallel-size", Unread: true}, // its meaning depends on other flags
			{Setting: EP, Names: "--enable-expert-parallel", Switch: true, Unread: true},
			{Setting: Nodes, Names: "--nnodes"},
			{Setting: Length, Names: "--max-model-len", Printed: "max_seq_len"},
			{Setting: Fraction, Names: "--gpu-memory-utilization"},
			{Setting: KVBytes, Names: "--kv-cache-memory-bytes"},
			{Setting: Blocks, Names: "--num-gpu-blocks-override"},
			{Setting: Step, Names: "--max-num-batched-tokens"},
			{Setting: Images, Names: "--limit-mm-per-prompt", Unread: true},
			{Setting: Requests, Names: "--max-num-seqs"},
			{Setting: Graphs, Names: "--max-cudagraph-capture-size"},
			{Setting: Block, Names: "--block-size"},
			{Setting: Offload, Names: "--cpu-offload-gb"},
			{Setting: KVType, Names: "--kv-cache-dtype"},
			{Setting: Eager, Names: "--enforce-eager", Switch: true},
			{Setting: Quant, Names: "--quantization -q"},
		},
		NoMemory: servers,
		Share:    &Share{Flag: "--gpu-memory-utilization", Setting: "gpu_memory_utilization", Defaults: []Default{{Value: 0.9}, {Version{0, 21}, 0.92}}},
		Block:    16,
		Since: map[Trait]Version{
			OwnWeightsMLA: {0, 8}, ManyRequests: {0, 10}, SamplesInOne: {0, 10}, SkipsSampling: {0, 7}, KeepsWindows: {0, 10}, LimitsPixels: {0, 11},
			TwoGraphs: {0, 11}, CountsGraphs: {0, 21}, SmallOutside: {0, 7}, MarlinTuring: {0, 14},
		},
		Marks:   []string{"vllm", "(enginecore", "occurredwhenwarmingup", "npurayworkerwrapper"},
		Mention: `\bvllm\b|vllm[/_]`,
		Metrics: &Metrics{Running: []string{"num_requests_running"}, Waiting: []string{"num_requests_waiting"},
			Cache:    []string{"kv_cache_usage_perc", "gpu_cache_usage_perc"}, // the second of older versions
			Finished: []string{"request_success_total"}, Prompt: []string{"prompt_tokens_total"}, Done: []string{"generation_tokens_total"}},
		Relief: Relief{Text: "leave more room besides weights and KV cache. --max-num-seqs and --max-num-batched-tokens shrink the profiling batch, --max-model-len the cache. --tensor-parallel-size spreads the weights"},
	},
	{
		Name: SGLang, Planned: true, Begins: []string{"sglang"},
		Programs: []string{"sglang"}, Verbs: []string{"serve"}, Modules: []string{"sglang.launch_server"},
		Flags: []Flag{
			{Setting: Model, Names: "--model-path --model"},
			{Setting: TP, Names: "--tp-size --tp --tensor-parallel-size"},
			{Setting: PP, Names: "--pp-size --pp --pipeline-parallel-size"},
			{Setting: EP, Names: "--ep-size --ep --expert-parallel-size"},
			{Setting: DP, Names: "--dp-size", After: " --enable-dp-attention"},
			{Setting: Nodes, Names: "--nnodes", After: " --node-rank 0 --dist-init-addr HOST:PORT"},
			{Setting: Length, Names: "--context-length", Printed: "context_len"},
			{Setting: Fraction, Names: "--mem-fraction-static"},
			{Setting: Step, Names: "--chunked-prefill-size"},
			{Setting: Requests, Names: "--max-running-requests"},
			{Setting: MaxKV, Names: "--max-total-tokens"},
			{Setting: Graphs, Names: "--cuda-graph-max-bs"},
			{Setting: Block, Names: "--page-size"},
			{Setting: KVType, Names: "--kv-cache-dtype"},
			{Setting: Eager, Names: "--disable-cuda-graph", Switch: true},
			{Setting: Quant, Names: "--quantization"},
		},
		NoMemory: servers,
		Share:    &Share{Flag: "--mem-fraction-static", Setting: "mem_fraction_static", Defaults: []Default{{Value: 0.88}}, Computed: true},
		Block:    1,
		Since:    map[Trait]Version{RoomForImages: {0, 4}},
		Marks:    []string{"sglang", "sgl-workspace", "mem-fraction-static", "mem_fraction_static"},
		Mention:  `sglang|req_to_token_pool|--max-running-requests|mem-fraction-static`,
		Metrics: &Metrics{Running: []string{"num_running_reqs"}, Waiting: []string{"num_queue_reqs"}, Cache: []string{"token_usage"},
			Finished: []string{"num_requests_total"}, Prompt: []string{"prompt_tokens_total"}, Done: []string{"generation_tokens_total"}},
		Relief: Relief{Text: "leave more room besides weights and KV cache, for activations and CUDA graphs; --cuda-graph-max-bs, --chunked-prefill-size and --max-running-requests make these smaller"},
	},
	{
		Name: LlamaCPP, Planned: true, Local: true, Begins: []string{"llama.cpp", "llama-server", "llamacpp"},
		Programs: []string{"llama-server", "llama-cli", "llama-server.exe"},
		Flags: []Flag{
			{Setting: Model, Names: "-m --model"},
			{Setting: Repo, Names: "-hf -hfr --hf-repo"},
			{Setting: Layers, Names: "-ngl --gpu-layers --n-gpu-layers"},
			{Setting: HostMoE, Names: "--n-cpu-moe -ncmoe"},
			{Setting: AllMoE, Names: "--cpu-moe -cmoe"},
			{Setting: Context, Names: "-c --ctx-size"},
			{Setting: Requests, Names: "-np --parallel"},
			{Setting: Unified, Names: "--kv-unified -kvu", Switch: true},
			{Setting: Step, Names: "-ub --ubatch-size"},
			{Setting: KVType, Names: "--cache-type-k -ctk"},
			{Setting: ValType, Names: "--cache-type-v -ctv"},
			{Setting: Flash, Names: "--flash-attn -fa"},
			{Setting: AllKeys, Names: "--swa-full", Switch: true},
			{Setting: CacheRAM, Names: "--cache-ram -cram"},
		},
		NoMemory: strings.Fields("host port api-key alias a t threads tb threads-batch b batch-size jinja temp top-k top-p min-p seed no-mmap mlock numa metrics verbose v " +
			"chat-template chat-template-file reasoning-format n predict n-predict no-webui fit fit-target cont-batching cb log-file lv no-warmup props slots timeout to"),
		Marks:   []string{"ggml", "llama_model_load", "llama_context", "llama.cpp", "gguf"},
		Mention: `\bggml|llama_|llama\.cpp|\bgguf|whisper_`,
	},
	{
		Name: Ollama, Planned: true, Local: true, Begins: []string{"ollama"},
		Programs: []string{"ollama"}, Verbs: []string{"serve", "run"},
		Flags: []Flag{
			{Setting: Length, Names: "OLLAMA_CONTEXT_LENGTH"},
			{Setting: Requests, Names: "OLLAMA_NUM_PARALLEL"},
			{Setting: KVType, Names: "OLLAMA_KV_CACHE_TYPE"},
			{Setting: Flash, Names: "OLLAMA_FLASH_ATTENTION"},
		},
		NoMemory: strings.Fields("OLLAMA_HOST OLLAMA_KEEP_ALIVE OLLAMA_MODELS OLLAMA_DEBUG OLLAMA_ORIGINS"),
		Marks:    []string{"ollamarunner", "ollama.exerunner", `ollama.exe"runner`, `ollama.exe\"runner`, "ollama_llama_server", "ollama[", "ollama|", "ollama-1|", "ollama_1|", "source=sched.go", "memory.required.full", "ml/backend/ggml"},
		Mention:  `\bollama`,
	},
	{
		Name:    TGI,
		Marks:   []string{"text_generation_launcher", "text_generation_server", "text-generation-inference", "text_generation.errors", "warmup(generation(", "text_generation/client", "router/src/main.rs", "unabletowarmupmodel"},
		Mention: `text_generation_(?:server|launcher)`,
		Relief:  Relief{"--max-batch-prefill-tokens 2048", "prefill less at once; --max-input-length and --max-total-tokens bound a request, --quantize makes the weights smaller"},
	},
	{
		Name:  TensorRT,
		Share: &Share{Flag: "kv_cache_free_gpu_memory_fraction:", Setting: "kv_cache_free_gpu_memory_fraction", Defaults: []Default{{Value: 0.9}}, Of: "what is free"},
	},
	{
		Name:   LMDeploy,
		Share:  &Share{Flag: "--cache-max-entry-count", Setting: "cache_max_entry_count", Defaults: []Default{{Value: 0.8}}, Of: "memory beside the weights"},
		Marks:  []string{"lmdeploy", "turbomind"},
		Relief: Relief{"--cache-max-entry-count 0.5", "leave more room besides weights and KV cache; --max-batch-size and --session-len bound a batch, --tp spreads the weights"},
	},
}

// servers lists flags of vLLM and SGLang that do not change the memory.
var servers = strings.Fields("host port api-key served-model-name trust-remote-code dtype tokenizer seed disable-log-requests uvicorn-log-level log-level " +
	"enable-auto-tool-choice tool-call-parser reasoning-parser chat-template enable-prefix-caching no-enable-prefix-caching disable-log-stats distributed-executor-backend " +
	"node-rank dist-init-addr master-addr master-port headless generation-config download-dir load-format revision enable-metrics tokenizer-path")
