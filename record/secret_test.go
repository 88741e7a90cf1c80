package record

import (
	"os/exec"
	"path/filepath"
	"testing"

	"strandline/internal/test/live"
)

// TestSecretsInPython runs the Python module's masking on the cases of Go's.
func TestSecretsInPython(t *testing.T) {
	const program = `
import json, re, sys; sys.path.insert(0, sys.argv[2])
from strandline import _secret
for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    args = [re.sub("«([^»]*)»", r"\1", arg) for arg in case["args"]]
    want = [re.sub("«[^»]*»", "***", arg) for arg in case["args"]]
    before = list(args)
    for got in (_secret.args(args), _secret.args(_secret.args(args))):
        if got != want or args != before:
            print(f"{case['name']}:\n got {got}\nwant {want}")
for line, want in {
    "INFO args: Namespace(api_key='abc', hf_token=None)": "INFO args: Namespace(api_key='***', hf_token=None)",
    "{'api_key': ['k1', 'k2'], 'port': 80}": "{'api_key': [***], 'port': 80}",
    "unexpected token: foo at 5": "unexpected token: foo at 5",
    "password: hunter": "password: ***",
    "sent Bearer abcdefgh1 to h": "sent Bearer *** to h",
}.items():
    if _secret.text(line) != want:
        print(f"got {_secret.text(line)}\nwant {want}")
`
	module, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(live.Tool(t, "python3"), "-c", program, "../internal/secret/testdata/cases.jsonl", module)
	c.Env = append(c.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
