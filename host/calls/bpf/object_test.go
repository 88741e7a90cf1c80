package bpf

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestObjectIsOfSources shows that the sources were not changed without
// rebuilding the object. test.sh builds it where the same compiler is.
func TestObjectIsOfSources(t *testing.T) {
	h := sha256.New()
	for _, name := range []string{"c/kernel.h", "c/events.h", "c/samples.h", "c/mappings.c", "c/driver.c", "c/requests.c"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(text)
	}
	noted, err := os.ReadFile("object/mappings.txt")
	if err != nil {
		t.Fatal(err)
	}
	if sum, _, _ := strings.Cut(string(noted), "\n"); sum != hex.EncodeToString(h.Sum(nil)) {
		t.Error("the sources changed since the object was built: run bpf/build.sh")
	}
}
