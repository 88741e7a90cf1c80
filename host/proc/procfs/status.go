package procfs

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Status is the content of /proc/PID/status. Sizes are in bytes.
type Status struct {
	Name    string
	State   string // such as "S (sleeping)"
	Group   int    // the process that a thread belongs to
	Threads int
	// VMSize is all mappings; RSS is the part of them in memory, and exactly the sum of
	// the three kinds after it.
	VMSize, RSS         uint64
	Anon, File, Shared  uint64
	Locked, Pinned      uint64
	PageTables, Swapped uint64
	User                int   // the effective user ID
	Parent              int   // 0 if it is in a namespace that we cannot see
	Tracer              int   // the process that debugs this one, 0 if none
	NamespacePIDs       []int // the process's pid in each namespace, ours first
}

// parseStatus reads the text of /proc/PID/status.
func parseStatus(r io.Reader) (Status, error) {
	var st Status
	s := lines(r)
	for n := 1; s.Scan(); n++ {
		name, value, ok := strings.Cut(s.Text(), ":")
		if !ok {
			continue
		}
		if err := st.set(name, strings.TrimSpace(value)); err != nil {
			return st, fmt.Errorf("line %d: %s: %w", n, name, err)
		}
	}
	return st, s.Err()
}

func (st *Status) set(name, value string) (err error) {
	size := map[string]*uint64{
		"VmSize": &st.VMSize, "VmRSS": &st.RSS, "RssAnon": &st.Anon, "RssFile": &st.File, "RssShmem": &st.Shared,
		"VmLck": &st.Locked, "VmPin": &st.Pinned, "VmPTE": &st.PageTables, "VmSwap": &st.Swapped,
	}[name]
	switch {
	case size != nil:
		*size, err = kilobytes(value)
	case name == "Name":
		st.Name = value
	case name == "State":
		st.State = value
	case name == "Tgid":
		st.Group, err = strconv.Atoi(value)
	case name == "Threads":
		st.Threads, err = strconv.Atoi(value)
	case name == "Uid": // real, effective, saved, of the file system
		if ids := strings.Fields(value); len(ids) > 1 {
			st.User, err = strconv.Atoi(ids[1])
		}
	case name == "PPid":
		st.Parent, err = strconv.Atoi(value)
	case name == "TracerPid":
		st.Tracer, err = strconv.Atoi(value)
	case name == "NSpid":
		for _, field := range strings.Fields(value) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			st.NamespacePIDs = append(st.NamespacePIDs, n)
		}
	}
	return err
}

// SumsCounters reports whether the kernel sums up the counters of all processors for status. Before Linux
// 6.16, 6.15.7 and 6.12.39 it left out some pages of each (commit 82241a83cd15).
func SumsCounters() bool {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return err == nil && sumsCounters(string(text))
}

// sumsCounters judges a release by its number alone: a vendor's backport is not known.
func sumsCounters(release string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(release, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return false
	}
	switch {
	case major == 6 && minor == 12:
		return patch >= 39
	case major == 6 && minor == 15:
		return patch >= 7
	}
	return major > 6 || major == 6 && minor >= 16
}

// numbers parses lines that consist of a name, a separator and a number.
func numbers(separator string) func(io.Reader) (map[string]uint64, error) {
	return func(r io.Reader) (map[string]uint64, error) {
		out := map[string]uint64{}
		s := lines(r)
		for n := 1; s.Scan(); n++ {
			name, value, _ := strings.Cut(s.Text(), separator)
			v, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			out[name] = v
		}
		return out, s.Err()
	}
}
