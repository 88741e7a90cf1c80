package proc

import (
	"fmt"
	"strconv"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
	"strandline/internal/lazyregexp"
	"strandline/profiles"
)

// summed adds up mappings by what they are for, as `strandline trace` does. Pages that
// are not anonymous are of the file that is mapped, or shared.
func summed(list []procfs.Usage) *profiles.Host {
	list = withoutRepeats(list)
	mappings := make([]procfs.Mapping, len(list))
	for i, u := range list {
		mappings[i] = u.Mapping
	}
	layout := vmmap.New(mappings)
	var rss, anonymous, heap, huge, swap, ofFile, ofShared, memfd, stacks, pinned, private, shared, writable uint64
	threads := int64(1)
	h := &profiles.Host{}
	for _, u := range list {
		u.Anonymous = min(u.Anonymous, u.RSS)
		rss, anonymous, huge, swap, pinned = rss+u.RSS, anonymous+u.Anonymous, huge+u.AnonymousHuge, swap+u.Swap, pinned+min(u.Locked, u.RSS)
		private, shared = private+u.PrivateDirty, shared+u.SharedDirty
		rest := u.RSS - u.Anonymous
		switch layout.Kind(u.Mapping) {
		case vmmap.Heap, vmmap.Arena:
			heap += u.Anonymous
		case vmmap.Thread:
			stacks, threads = stacks+u.Anonymous, threads+1
		case vmmap.Stack:
			stacks += u.Anonymous
		case vmmap.Memfd:
			ofShared, memfd, rest = ofShared+rest, memfd+rest, 0
		case vmmap.Shared:
			ofShared, rest = ofShared+rest, 0
		}
		ofFile += rest
		if u.Write && !u.Shared {
			writable += u.Size()
		}
		if h.Allocator == "" {
			h.Allocator = vmmap.Allocator(u.Path)
		}
	}
	h.RSS, h.Anonymous, h.Heap, h.Stacks, h.HugePages, h.Swap = bytes(rss), bytes(anonymous), bytes(heap), bytes(stacks), bytes(huge), bytes(swap)
	h.File, h.Shared, h.Memfd, h.Pinned = bytes(ofFile), bytes(ofShared), bytes(memfd), bytes(pinned)
	h.PrivateDirty, h.SharedDirty = bytes(private), bytes(shared)
	h.Writable, h.Threads = bytes(writable), &threads
	return h
}

// withoutRepeats are mappings without what the kernel lists again: a mapping that grows while the
// text is read. The last is of the size that it had then.
func withoutRepeats(list []procfs.Usage) []procfs.Usage {
	var out []procfs.Usage
	for _, u := range list {
		if n := len(out); n > 0 && u.Start < out[n-1].End && u.End >= out[n-1].End {
			out = out[:n-1]
		}
		out = append(out, u)
	}
	return out
}

var (
	totals  = lazyregexp.New(`^ *total kB +(\d+) +(\d+) +(\d+)`)
	columns = lazyregexp.New(`\S+`)
	// sharedName are names of files that hold shared memory: pmap leaves out the folder.
	sharedName = lazyregexp.New(`^(SYSV[0-9a-f]{8}|zero|torch_\d+_\w+|psm_\w+|plasma\w*|sem\.\w+)( \(deleted\))?$`)
)

// pmap reads the mappings of pmap -x, -X or -XX, whose sums are the last line.
func pmap(lines []string) (*profiles.Host, error) {
	names := columns.FindAllString(lines[0], -1)
	var list []procfs.Usage
	for i, line := range lines[1:] {
		if m := totals.FindStringSubmatch(line); m != nil {
			if sum := kilobytesOf(m[2]); sum != nil {
				h := summed(list)
				if len(withoutRepeats(list)) == len(list) && !sumsUp(h, *sum) {
					h = &profiles.Host{RSS: sum}
				}
				h.Heap, h.HugePages, h.Swap, h.Pinned, h.PrivateDirty, h.SharedDirty = nil, nil, nil, nil, nil, nil // it does not state them
				return h, nil
			}
		}
		if strings.HasPrefix(strings.TrimSpace(line), "====") && i+2 < len(lines) {
			return pmapSums(names, lines[i+2], list)
		}
		if u, ok := pmapRow(names, line); ok {
			list = append(list, u)
		}
	}
	return nil, fmt.Errorf("the line of sums is missing: the text is cut off")
}

// kilobytesOf is a size in KiB in bytes, nil if it is none.
func kilobytesOf(text string) *int64 {
	n, err := strconv.ParseUint(text, 10, 52)
	if err != nil {
		return nil
	}
	return bytes(n << 10)
}

// sumsUp reports whether the rows of a text make up its sum but for their rounding, so
// that none is missing.
func sumsUp(rows *profiles.Host, sum int64) bool {
	return 50*max(*rows.RSS-sum, sum-*rows.RSS) <= sum
}

// pmapSums reads the last line of pmap -X. Its mappings are used if they are all there.
func pmapSums(names []string, line string, list []procfs.Usage) (*profiles.Host, error) {
	at := map[string]*int64{}
	sums := columns.FindAllString(line, -1)
	for k, text := range sums { // in the order of the columns from Size on
		column := k + len(names) - len(sums)
		if n, err := strconv.ParseUint(text, 10, 52); err == nil && column >= 0 {
			at[names[column]] = bytes(n << 10)
		}
	}
	if at["Rss"] == nil {
		return nil, fmt.Errorf("the line of sums has no Rss: the text is cut off")
	}
	h := summed(list)
	if len(withoutRepeats(list)) < len(list) { // the sums count some of them twice
		return h, nil
	}
	if !sumsUp(h, *at["Rss"]) {
		h = &profiles.Host{}
	}
	h.RSS, h.Anonymous, h.Swap, h.HugePages, h.Pinned = at["Rss"], at["Anonymous"], at["Swap"], at["AnonHugePages"], at["Locked"]
	h.PrivateDirty, h.SharedDirty = at["Private_Dirty"], at["Shared_Dirty"]
	return h, nil
}

// pmapRow reads a mapping; ok is false for any other line. The short form
// states no end: it follows from the size.
func pmapRow(names []string, line string) (u procfs.Usage, ok bool) {
	cells := columns.FindAllString(line, -1)
	value := map[string]string{}
	for i, name := range names {
		switch {
		case i >= len(cells):
		case name == "Mapping":
			value[name] = strings.Join(cells[i:], " ")
		default:
			value[name] = cells[i]
		}
	}
	size := func(name string) uint64 {
		n, _ := strconv.ParseUint(value[name], 10, 52)
		return n << 10
	}
	start, err := strconv.ParseUint(value["Address"], 16, 64)
	mode := value["Mode"] + value["Perm"]
	if err != nil || len(mode) < 4 {
		return u, false
	}
	u.Start, u.End, u.RSS = start, start+size("Kbytes")+size("Size"), size("RSS")+size("Rss")
	u.Read, u.Write, u.Exec, u.Shared = mode[0] == 'r', mode[1] == 'w', mode[2] == 'x', mode[3] == 's'
	u.Anonymous, u.Swap, u.Locked, u.AnonymousHuge = size("Anonymous"), size("Swap"), size("Locked"), size("AnonHugePages")
	switch name := value["Mapping"]; {
	case strings.HasPrefix(name, "["):
		u.Path = strings.ReplaceAll(name, " ", "")
	case strings.HasPrefix(name, "memfd:"), sharedName.MatchString(name):
		u.Path = map[bool]string{true: "/", false: "/dev/shm/"}[strings.HasPrefix(name, "memfd:")] + name
	default:
		u.Path = name
	}
	if value["Mode"] != "" { // pmap -x shows neither the heap's name nor what is anonymous
		if u.Path == "[anon]" || u.Path == "[stack]" {
			u.Anonymous = u.RSS
		}
		if u.Path == "[anon]" {
			u.Path = ""
		}
	}
	return u, u.End >= u.Start
}
