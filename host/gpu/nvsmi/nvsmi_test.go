package nvsmi

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	h100 = "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16"
	a100 = "GPU-f7c1496c-b7f5-b1d2-78ea-68826f778059"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, devices, processes, want string }{
		{"two devices", "0, " + h100 + ", 77537 MiB, 81559 MiB\n1, " + a100 + ", 5 MiB, 40960 MiB\n", h100 + ", 2069192, 77002 MiB\n" + h100 + ", 2680904, 518 MiB\n",
			`{"devices":[{"index":"0","uuid":"` + h100 + `","used_bytes":81303437312,"total_bytes":85520809984},{"index":"1","uuid":"` + a100 + `","used_bytes":5242880,"total_bytes":42949672960}],` +
				`"processes":[{"pid":2069192,"uuid":"` + h100 + `","used_bytes":80742449152},{"pid":2680904,"uuid":"` + h100 + `","used_bytes":543162368}]}`},
		{"memory of the host", "0, GPU-1, [N/A], [N/A]\n", "GPU-1, 77, 300 MiB\n",
			`{"devices":[{"index":"0","uuid":"GPU-1","used_bytes":null,"total_bytes":null}],"processes":[{"pid":77,"uuid":"GPU-1","used_bytes":314572800}]}`},
		{"not to be looked at", "0, GPU-1, [Insufficient Permissions], 81920 MiB\r\n", "GPU-1, 77, [N/A]\nGPU-1, [Insufficient Permissions], [Insufficient Permissions]\n",
			`{"devices":[{"index":"0","uuid":"GPU-1","used_bytes":null,"total_bytes":85899345920}],"processes":[{"pid":77,"uuid":"GPU-1","used_bytes":null}]}`},
		{"none computes", "0, GPU-1, 4 MiB, 8 MiB\n", "", `{"devices":[{"index":"0","uuid":"GPU-1","used_bytes":4194304,"total_bytes":8388608}],"processes":[]}`},
	} {
		r, err := parse(c.devices, c.processes)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, _ := json.Marshal(r); string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	for _, c := range [][2]string{
		{"", ""},
		{"0, GPU-1, 4 GiB, 8 GiB", ""},
		{"0, GPU-1, -4 MiB, 8 MiB", ""},
		{"0, GPU-1, 9223372036854775807 MiB, 8 MiB", ""},
		{"0, GPU-1, 4 MiB", ""},
		{"0, GPU-1, 4 MiB, 8 MiB", "GPU-1, 77, 3"},
		{"0, GPU-1, 4 MiB, 8 MiB", "GPU-1, 77"},
	} {
		if r, err := parse(c[0], c[1]); err == nil {
			t.Errorf("%q, %q are read as %+v", c[0], c[1], r)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := Read(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("without the tool: %v", err)
	}
	for _, c := range []struct{ script, want string }{
		{"echo 'No devices were found'; exit 6", "nvidia-smi says: No devices were found"},
		{"echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\"; exit 9", "nvidia-smi says: NVIDIA-SMI has failed"},
		{"exit 3", "nvidia-smi: exit status 3"},
		{"while :; do :; done", "did not answer in time"},
		{"while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", "did not answer in time"},
		{`case $1 in *gpu=*) echo "0, GPU-1, 4 MiB, 8 MiB";; esac`, ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		patience := 2 * time.Minute
		if strings.Contains(c.want, "in time") {
			patience = time.Second
		}
		ctx, stop := context.WithTimeout(t.Context(), patience)
		_, err := Read(ctx)
		stop()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.script, err, c.want)
		}
	}
}

// TestNoKeys checks that the tool does not get the keys of the environment.
func TestNoKeys(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\necho \"$OPENAI_API_KEY,$KEPT\"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("OPENAI_API_KEY", "quietSecret")
	t.Setenv("KEPT", "kept")
	if _, err := Read(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": ,kept") {
		t.Error(err)
	}
}
