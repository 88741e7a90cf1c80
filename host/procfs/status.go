package procfs

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Status is what /proc/PID/status has of a process. Sizes are bytes.
type Status struct {
	Name    string
	State   string // such as "S (sleeping)"
	Group   int    // the process that a thread is of
	Threads int
	// VMSize is all mappings; RSS what of them is in memory, and exactly the sum of
	// the three kinds after it.
	VMSize, RSS         uint64
	Anon, File, Shared  uint64
	Locked, Pinned      uint64
	PageTables, Swapped uint64
	Parent              int   // 0 if it is in a namespace that we do not see
	Tracer              int   // that debugs the process, 0 if none
	NamespacePIDs       []int // the process's number in each namespace, ours first
}

// ParseStatus reads the text of /proc/PID/status.
func ParseStatus(r io.Reader) (Status, error) {
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

// numbers reads lines of a name and a number, which a separator parts.
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
