package planner

import (
	"net/url"
	"testing"
)

// BenchmarkPage answers the form as a user types.
func BenchmarkPage(b *testing.B) {
	p := NewPage("", nil)
	for _, c := range []struct{ name, question string }{
		{"serve", "mode=serve&model=DeepSeek-R1&gpu=H200&gpus=16&formats=true"},
		{"train", "mode=train&model=Meta-Llama-3.1-405B&gpu=H100&gpus=512&tp=8&pp=16"},
		{"rl", "mode=rl&model=Qwen2.5-72B&gpu=H200&gpus=64&rollout-tp=8"},
	} {
		q, err := url.ParseQuery(c.question)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if a := p.Ask(b.Context(), "plan", q); a.Status != 200 {
					b.Fatalf("%s", a.Body)
				}
			}
		})
	}
}
