//go:build unix

package safefile

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// privateGroup reports whether the group of a folder is that of its owner alone, as many
// systems give each user one, with a mask by which it can write. Directory services do not
// list theirs, but number such a group as its user.
func privateGroup(folder *os.File, s *syscall.Stat_t) bool {
	if s.Gid != s.Uid || hasACL(folder) {
		return false
	}
	users, err := accounts("/etc/passwd")
	if err != nil {
		return false
	}
	groups, err := accounts("/etc/group")
	if err != nil {
		return false
	}
	return private(strconv.Itoa(int(s.Uid)), users, groups)
}

// private reports whether no other user than the one of an ID is in the group of that ID.
func private(id string, users, groups [][]string) bool {
	var names []string
	for _, u := range users { // name, password, ID, group
		switch {
		case len(u) < 4:
		case u[2] == id:
			names = append(names, u[0])
		case u[3] == id:
			return false
		}
	}
	for _, g := range groups { // name, password, ID, members
		if len(g) < 4 || g[2] != id {
			continue
		}
		for member := range strings.SplitSeq(g[3], ",") {
			if member != "" && !slices.Contains(names, member) {
				return false
			}
		}
	}
	return true
}

// accounts are the lines of a file of users or groups. There are none without the file.
func accounts(path string) (lines [][]string, err error) {
	const maxFile = 64 << 20
	data, err := ReadFile(path, maxFile)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		lines = append(lines, strings.Split(strings.TrimSpace(string(line)), ":"))
	}
	return lines, nil
}
