package serving_test

import (
	"fmt"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/plan/serving"
)

func ExampleSetup_Fit() {
	m, err := model.Find("Llama-3.1-8B", "")
	if err != nil {
		panic(err)
	}
	gpu, err := plan.FindGPU("H100")
	if err != nil {
		panic(err)
	}
	vllm, _ := engine.ParseRelease("vllm", "0.11")
	fit, err := serving.Setup{Model: m, Engine: vllm, GPU: gpu, Length: 32768}.Fit()
	if err != nil {
		panic(err)
	}
	fmt.Println(fit.Verdict, fit.PerToken, "bytes a token")
	fmt.Println(fit.Flags[1], fit.Flags[2])
	// Output:
	// fits 131072 bytes a token
	// --max-model-len 32768 --gpu-memory-utilization 0.9
}
