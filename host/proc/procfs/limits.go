package procfs

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// FileSizeLimit is the largest file that the process can write, in bytes: RLIMIT_FSIZE.
func (p Process) FileSizeLimit() (uint64, error) {
	text, err := os.ReadFile(p.file("limits"))
	if err != nil {
		return 0, err
	}
	return parseLimit(string(text), "Max file size")
}

// parseLimit reads the soft limit of a name in the text of /proc/PID/limits.
func parseLimit(text, name string) (uint64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			if fields[0] == "unlimited" {
				return math.MaxUint64, nil
			}
			return strconv.ParseUint(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no %q", name)
}
