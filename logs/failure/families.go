package failure

// families are all that are known, the most specific first.
//
// To add one: family_*.go, this list (the specific first), a Source in failure.go, each
// Kind in a table of judge/texts, an example in TestFamilies.
var families = []*family{
	familyVLLM, familySGLang, familyFlashInfer, familyTGI, familyTensorRT, familyONNX,
	familyTensorFlow, familyXLA,
	familyLlama, familyOllama, familyMLX,
	familyKernel, familyKubernetes, familySlurm, familyRay, familyShared, familyHeap, familyAllocators, familyWindows,
	familyDriver, familyXPU, familyTorch, familyBroken, familyAttempt, familyStartUp,
	familyProcess,
	familyUnknown,
}
