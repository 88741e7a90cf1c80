// Package procfs reads what Linux exposes about a process under /proc. It parses text
// that another process can influence (names of mappings and of processes), so a parser
// never trusts a line: a line that it cannot read is an error that gives the line's
// number.
package procfs

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Mapping is one line of /proc/PID/maps: the addresses from Start up to End.
type Mapping struct {
	Start, End uint64
	Read, Write, Exec,
	Shared bool
	Offset uint64 // in the file, in bytes
	Dev    string // major:minor, hexadecimal
	Inode  uint64 // 0 if there is no file
	Path   string // of the file, or a name in brackets, or empty
	// Deleted states that the file no longer has a name.
	Deleted bool
}

// Size returns the size in bytes.
func (m Mapping) Size() uint64 { return m.End - m.Start }

// Contains reports whether an address lies in the mapping.
func (m Mapping) Contains(addr uint64) bool { return m.Start <= addr && addr < m.End }

// Usage is one entry of /proc/PID/smaps. All sizes are in bytes.
type Usage struct {
	Mapping
	RSS, PSS      uint64
	PSSAnonymous  uint64 // part of PSS, like the next one; only for all mappings together
	PSSShared     uint64
	SharedDirty   uint64
	PrivateDirty  uint64
	Anonymous     uint64
	AnonymousHuge uint64 // in huge pages
	Locked, Swap  uint64
}

// longestLine is longer than what the kernel prints for a mapping: a path has at most
// 4096 bytes, each of which can be escaped as four.
const longestLine = 64 << 10

func lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), longestLine)
	return s
}

// parseMaps reads the text of /proc/PID/maps.
func parseMaps(r io.Reader) ([]Mapping, error) {
	var out []Mapping
	s := lines(r)
	for n := 1; s.Scan(); n++ {
		m, err := parseMapping(s.Text())
		if err != nil {
			return out, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, m)
	}
	return out, s.Err()
}

// parseMapping reads "start-end perms offset dev inode   path".
func parseMapping(line string) (m Mapping, err error) {
	field, rest := cut(line)
	from, to, ok := strings.Cut(field, "-")
	if !ok {
		return m, fmt.Errorf("%q is not a range of addresses", field)
	}
	if m.Start, err = strconv.ParseUint(from, 16, 64); err != nil {
		return m, err
	}
	if m.End, err = strconv.ParseUint(to, 16, 64); err != nil {
		return m, err
	}
	if m.End < m.Start {
		return m, fmt.Errorf("the mapping %q ends before it starts", field)
	}
	field, rest = cut(rest)
	if len(field) != 4 {
		return m, fmt.Errorf("%q are not permissions", field)
	}
	m.Read, m.Write, m.Exec, m.Shared = field[0] == 'r', field[1] == 'w', field[2] == 'x', field[3] == 's'
	field, rest = cut(rest)
	if m.Offset, err = strconv.ParseUint(field, 16, 64); err != nil {
		return m, err
	}
	m.Dev, rest = cut(rest)
	field, rest = cut(rest)
	if m.Inode, err = strconv.ParseUint(field, 10, 64); err != nil {
		return m, err
	}
	m.Path = unescape(strings.TrimLeft(rest, " "))
	if m.Inode != 0 {
		m.Path, m.Deleted = strings.CutSuffix(m.Path, " (deleted)")
	}
	return m, nil
}

func cut(line string) (field, rest string) {
	field, rest, _ = strings.Cut(line, " ")
	return field, rest
}

// unescape undoes the kernel's escaping of newlines in paths.
func unescape(path string) string { return strings.ReplaceAll(path, `\012`, "\n") }

// ParseSmaps reads the text of /proc/PID/smaps.
func ParseSmaps(r io.Reader) ([]Usage, error) {
	var out []Usage
	s := lines(r)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(name, " -") { // a header has an address range before its first colon
			m, err := parseMapping(line)
			if err != nil {
				return out, fmt.Errorf("line %d: %w", n, err)
			}
			out = append(out, Usage{Mapping: m})
			continue
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("line %d: %q comes before the first mapping", n, name)
		}
		if err := out[len(out)-1].set(name, strings.TrimSpace(value)); err != nil {
			return out, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return out, s.Err()
}

func (u *Usage) set(name, value string) error {
	var field *uint64
	switch name {
	case "Rss":
		field = &u.RSS
	case "Pss":
		field = &u.PSS
	case "Pss_Anon":
		field = &u.PSSAnonymous
	case "Pss_Shmem":
		field = &u.PSSShared
	case "Shared_Dirty":
		field = &u.SharedDirty
	case "Private_Dirty":
		field = &u.PrivateDirty
	case "Anonymous":
		field = &u.Anonymous
	case "AnonHugePages":
		field = &u.AnonymousHuge
	case "Locked":
		field = &u.Locked
	case "Swap":
		field = &u.Swap
	default:
		return nil
	}
	n, err := kilobytes(value)
	*field = n
	return err
}

// kilobytes reads "1234 kB" as bytes.
func kilobytes(text string) (uint64, error) {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, err
	}
	if strings.TrimSpace(unit) != "kB" || n > 1<<53 {
		return 0, fmt.Errorf("%q is not a size in kB", text)
	}
	return n << 10, nil
}

// An Identity is the same for all names of one file. Its size and time distinguish the
// file from another one in a file system that reuses inode numbers.
type Identity struct {
	FileID
	Size, Time int64
}
