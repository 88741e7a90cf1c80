//go:build !js

package nvsmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"strandline/internal/secret"
)

// ErrNone states that the tool is not installed.
var ErrNone = errors.New("nvidia-smi is not here")

// Read runs the tool.
func Read(ctx context.Context) (*Reading, error) {
	tool, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, ErrNone
	}
	devices, err := ask(ctx, tool, "--query-gpu=index,uuid,memory.used,memory.total")
	if err != nil {
		return nil, err
	}
	processes, err := ask(ctx, tool, "--query-compute-apps=gpu_uuid,pid,used_memory")
	if err != nil {
		return nil, err
	}
	return parse(devices, processes)
}

// maxOutput is more than the tool prints for the largest machine, in bytes.
const maxOutput = 1 << 20

// ask runs the tool, which prints its errors on standard output.
func ask(ctx context.Context, tool, query string) (string, error) {
	c := exec.CommandContext(ctx, tool, query, "--format=csv,noheader")
	c.Env = secret.Environ(os.Environ()) // a tool needs no keys
	out := &bounded{}
	c.Stdout, c.Stderr = out, out
	c.WaitDelay = 100 * time.Millisecond
	err := c.Run()
	output, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	switch {
	case ctx.Err() != nil:
		return "", errors.New("nvidia-smi did not answer in time")
	case err != nil && output != "":
		return "", fmt.Errorf("nvidia-smi says: %s", output)
	case err != nil:
		return "", fmt.Errorf("nvidia-smi: %w", err)
	case out.Len() > maxOutput:
		return "", errors.New("nvidia-smi printed more than is possible")
	}
	return out.String(), nil
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(maxOutput+1-b.Len(), 0))])
	return len(p), nil
}
