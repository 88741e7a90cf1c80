package failure

import "strandline/plan/engine"

// A Hint is what a text shows about the program and the system that it is of, beside
// its statements.
type Hint int

// The hints.
const (
	HintVLLM Hint = iota
	HintSGLang
	HintTGI
	HintTensorRT
	HintLlama
	HintOllama
	HintMLX
	HintComfyUI
	HintDeepSpeed
	HintTrainer // Hugging Face's Trainer, Accelerate, Lightning and others of that kind
	HintWindows
	HintWSL
	HintUnix // paths of a system that is not Windows
	HintJetson
	HintIntegrated // a GPU that shares the host's memory
	HintTensorFlow
	HintJAX
	HintTPU
	HintGraphs    // CUDA graphs are captured
	HintEval      // an evaluation without gradients
	HintContainer // Docker or Kubernetes
	HintShutdown  // a launcher ends its other workers
	HintJulia
	HintLMDeploy
	HintSplit  // the release of PyTorch has max_split_size_mb
	HintPinned // ggml could not lock host memory, and goes on without
	HintWhisper
	HintAttempt  // the driver refused a request, see [Failure.Attempt]
	HintProgress // a step, a request or a stage is done
	HintCrash    // a process ends with an error
	HintXid      // the NVIDIA driver's fault messages
	HintECC      // broken device memory
	HintTimeout  // a collective of NCCL that did not end
	HintIllegal  // an address that is nobody's
	HintReady    // an engine knows the size of its cache, or serves

	maxHints // how many there are
)

// engines are the hints at engines, whose names folders may have.
var engines = [maxHints]bool{HintVLLM: true, HintSGLang: true, HintTGI: true, HintLlama: true, HintOllama: true, HintLMDeploy: true}

// hints are the words that show it, in lower case and without white space.
var hints = []struct {
	hint  Hint
	words []string
}{
	{HintVLLM, engine.Named(engine.VLLM).Marks},
	{HintSGLang, engine.Named(engine.SGLang).Marks},
	{HintTGI, engine.Named(engine.TGI).Marks},
	{HintTensorRT, []string{"tensorrt", "[trt]"}},
	{HintLlama, engine.Named(engine.LlamaCPP).Marks},
	{HintOllama, engine.Named(engine.Ollama).Marks},
	{HintMLX, []string{"mlx"}},
	{HintComfyUI, []string{"comfyui", "exceptionduringprocessing!!!", "samplercustom", "ksampler"}},
	{HintDeepSpeed, []string{"deepspeed"}},
	{HintTrainer, []string{"transformers/trainer", "accelerate/", "lightning", "trl/", "llamafactory", "axolotl", "megatron", "optimizer.step("}},
	{HintWindows, []string{`:\users\`, `\site-packages\`, `:\program`, `\appdata\`, `\python_embeded\`, `\execution.py`, "windows11", "windows10", "winerror", `\alloc_cpu.cpp`, "defaultcpuallocator:notenoughmemory"}},
	{HintWSL, []string{"wsl2", "/mnt/c/", "microsoft-standard", "dxgkrnl"}},
	{HintUnix, []string{`file"/`, "/usr/", "/home/", "/root/", "/opt/"}},
	{HintJetson, []string{"jetson", "-tegra", "/tegra", "tegrastats", "nvidiategra", "nvmap", "orinnano", "jetpack"}}, // "compute graph" has tegra, too
	{HintIntegrated, []string{"strixhalo", "gfx1151", "gfx1103", "gfx1150", "ryzenai", "radeon780m", "radeon890m", "8060s", "radeongraphics"}},
	{HintTensorFlow, []string{"tensorflow/core", "tensorflow/stream", "tensorflow.python", "tensorflow/python", "tensorflow/compiler", "importtensorflow"}},
	{HintJAX, []string{"jaxlib", "xlaruntimeerror", "jax/_src"}},
	{HintTPU, []string{"xla:tpu", "tpu_"}},
	{HintGraphs, []string{"capturecudagraph", "graphcapturing", "cudagraph"}},
	{HintEval, []string{"evaluate(", "validation_step", "defvalidate", ".eval()", "evaluation_loop"}},
	{HintContainer, []string{"dockerrun", "kubelet", "kubectl", "k8s", "containerid"}},
	{HintShutdown, []string{"closingsignalsigterm", "forcefullyexitingviasigkill", "forcefullyexitingviasignals.sigkill", "terminatinglaunchedworkers", "notifyallprocessgroups"}},
	{HintJulia, []string{".julia/packages", "cudadrv.cuerror", "effectivegpumemoryusage", "cuarrays", "cuda.jl", `\.julia\`}},
	{HintLMDeploy, engine.Named(engine.LMDeploy).Marks},
	{HintSplit, []string{"settingmax_split_size_mb"}},
	{HintWhisper, []string{"whisper_model_load", "whisper_init_", "whisper_backend_init"}},
	{HintAttempt, familyAttempt.keys},
	{HintProgress, []string{"it/s", "s/it", "loss:", "loss=", "'loss'", `"loss"`, `http/1.1"200`, "tokens/s", "tok/s", "samples/s", "applicationstartupcomplete", "finishedin", "elapsedtime"}},
	{HintCrash, []string{"traceback(mostrecentcalllast)", "coredumped", "terminatecalled", "segmentationfault", "childfailederror", "exitcode", "exitedwith", "internalassertfailed", "outofmemoryerror", "enginedeaderror"}},
	{HintXid, []string{"nvrm:xid"}},
	{HintECC, packedFault(HintECC)},
	{HintTimeout, packedFault(HintTimeout)},
	{HintIllegal, packedFault(HintIllegal)},
	{HintReady, []string{"applicationstartupcomplete", "uvicornrunning", "gpukvcachesize", "availablekvcachememory", "gpublocks:", "max_total_num_tokens=", "firedup", "llamarunnerstartedin", "http/1.1\"", "serverislistening", "capturingfinished", "shuttingdown", "shutdown", "loss"}},
	{HintPinned, []string{"mibofpinnedmemory", "mbofpinnedmemory", "ggml_vulkan:failedtoallocatepinnedmemory"}},
}
