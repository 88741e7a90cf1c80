package jobs

import (
	"cmp"
	"path"
	"strings"

	"strandline/logs/ranks"
)

// at is the node of a name, made if need be.
func (j *job) at(name string) *node {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil
	}
	short := name
	if strings.Count(name, ".") != 3 || !numbers.MatchString(name[:1]) {
		short, _, _ = strings.Cut(name, ".")
	}
	n := j.hosts[short]
	if n == nil {
		n = &node{names: []string{short}, ranks: map[int]bool{}, base: -1}
		j.hosts[short] = n
		j.nodes = append(j.nodes, n)
	}
	return n
}

// place finds the node of a channel.
func (j *job) place(c *channel) {
	for _, v := range c.voices {
		name := v.Host
		if name == "" {
			name = v.Speaker.Host
		}
		if name == "" {
			name = v.Speaker.IP
		}
		if name != "" && c.node == nil {
			c.node = j.at(name)
		}
	}
}

// nodeOfText is the node of a text without prefixes, by the ranks in it.
func (j *job) nodeOfText(c *channel) *node {
	h, known := j.named[c.text]
	if !known {
		h = hostsIn(c.text)
		j.named[c.text] = h
	}
	if h.host != "" {
		return j.at(h.host)
	}
	if h.several || c.rank >= 0 || c.voices[0].PID > 0 || c.voices[0].Tag >= 0 && c.voices[0].Tag == c.rank || c.text.Slices != nil {
		c.whole = h.several
		return nil
	}
	const maxPerNode = 16
	if _, named := c.named(); len(named) > maxPerNode || len(named) == j.world && j.world > 8 || c.voices[0].Label >= 0 || c.voices[0].Tag >= 0 {
		return nil
	}
	if n := j.unnamed[c.text]; n != nil {
		return n
	}
	n := &node{ranks: map[int]bool{}, base: -1} // the console of a node whose name is not told
	for _, x := range j.nodes {
		if name := x.name(); name != "" && strings.Contains(path.Base(c.text.Name), name) {
			n = x
		}
	}
	j.unnamed[c.text] = n
	if n.name() == "" {
		j.nodes = append(j.nodes, n)
	}
	return n
}

// hosts are what a text names: the only one, or else that of a launcher.
type hosts struct {
	host    string // "" if there is none
	several bool
}

func hostsIn(t *ranks.Text) (h hosts) {
	for _, v := range t.Voices {
		h.several = h.several || h.host != "" && v.Host != "" && v.Host != h.host
		h.host = cmp.Or(h.host, v.Host)
	}
	if h.host != "" && !h.several {
		return h
	}
	h.host = ""
	for _, e := range t.Exits {
		if e.Local >= 0 && e.Host != "" {
			h.host = e.Host
			break
		}
	}
	return h
}

// nodeOf is the node of a rank, by what is known of its neighbors, or nil.
func (j *job) nodeOf(n int) *node {
	if r := j.ranks[n]; r != nil && r.node != nil {
		return r.node
	}
	if j.nodeAt == nil {
		j.nodeAt = map[int]*node{}
		first := func(n int, x *node) {
			if j.nodeAt[n] == nil {
				j.nodeAt[n] = x
			}
		}
		for _, x := range j.nodes {
			for n := range x.ranks {
				first(n, x)
			}
		}
		for _, x := range j.nodes {
			for n := x.base; x.base >= 0 && n < x.base+8; n++ {
				first(n, x)
			}
		}
	}
	return j.nodeAt[n]
}
