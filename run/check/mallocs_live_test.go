//go:build linux && (amd64 || arm64)

package check

import (
	"os"
	"path/filepath"
	"testing"

	"strandline/finding"
	"strandline/internal/test/live"
	"strandline/judge/gate"
)

// TestLeakInHeap names the function of a program that keeps what malloc gave it, beside one
// that makes the heap grow as well and frees it.
func TestLeakInHeap(t *testing.T) {
	live.Traces(t)
	const source = `
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static void *hold;
APART void keeps(void) { hold = malloc(40000); memset(hold, 1, 40000); }
APART void borrows(void) { for (int i = 0; i < 40; i++) hold = malloc(70000), memset(hold, 1, 70000), free(hold); }
int main(void) { for (int i = 0; i < 1200; i++) borrows(), keeps(), usleep(5000); }`
	out, err := os.Create(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	limits := Limits{gate.Host: {}}
	r, err := Do(t.Context(), Options{
		Command: []string{live.Build(t, source, nil, "-fno-builtin")}, Env: os.Environ(), Dir: filepath.Join(t.TempDir(), "recording"),
		Steps: "time", Stdout: out, Lines: limits,
	})
	if err != nil || r.Error != nil || r.Status != 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	doc := Judge(r, limits, nil)
	if f := doc.Findings[0]; doc.Verdict != finding.Leaking || f.Site == nil || f.Site.Function != "keeps" {
		t.Errorf("%s: %+v, %q", doc.Verdict, f.Site, f.Detail)
	}
}
