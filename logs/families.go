package logs

// families are all that are known, those first that say most.
var families = []*family{
	familyVLLM, familySGLang, familyTGI, familyTensorRT, familyONNX,
	familyTensorFlow, familyXLA,
	familyLlama, familyOllama, familyMLX,
	familyKernel, familyKubernetes, familySlurm, familyRay, familyShared, familyAllocators, familyWindows,
	familyDriver, familyXPU, familyTorch,
	familyProcess,
	familyUnknown,
}
