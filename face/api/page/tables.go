package page

// At is the answer to at: what is live after an event, by group.
type At struct {
	Event     int   `json:"event"`
	Live      int64 `json:"live"`
	Requested int64 `json:"requested"`
	Reserved  int64 `json:"reserved"`
	Count     int   `json:"count"`
	Table
}

// Range is the answer to range: what was allocated from one event to another, by group.
type Range struct {
	Bytes int64 `json:"bytes"`
	Table
}

// Table is a list of groups, the largest first.
type Table struct {
	Rows []Row `json:"rows"`
	More More  `json:"more"`
}

// Row is a group in a table.
type Row struct {
	Key     string `json:"key"`
	Group   int    `json:"group"`
	Bytes   int64  `json:"bytes"`
	Count   int    `json:"count"`
	Kept    int64  `json:"kept"`
	Freed   int64  `json:"freed"`
	Pending int64  `json:"pending"`
	A       int64  `json:"a,omitempty"` // of a difference: bytes after event A, and after B
	B       int64  `json:"b,omitempty"`
}

// More sums up the groups that a table leaves out.
type More struct {
	Groups int   `json:"groups"`
	Bytes  int64 `json:"bytes"`
	Count  int   `json:"count"`
}

// Diff is the answer to diff: what changed from event A to event B, by group.
type Diff struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
	Table
}

// Keys is the answer to find: the keys of groups.
type Keys struct {
	Keys []string `json:"keys"`
}

// Flame is the answer to flame: stacks as a tree.
type Flame struct {
	Bytes   int64   `json:"bytes"`
	Count   int     `json:"count"`
	Frames  []Frame `json:"frames"`
	Nodes   Nodes   `json:"nodes"`
	LeftOut int     `json:"left_out"`
}

// Nodes are the nodes of the tree, one array per field; Frame is an index into the frames, Parent one into the nodes, -1 at the root.
type Nodes struct {
	Frame  []int   `json:"frame"`
	Parent []int   `json:"parent"`
	Bytes  []int64 `json:"bytes"`
	Count  []int   `json:"count"`
	Net    []int64 `json:"net,omitempty"` // of a difference: its bytes are what was added and what went, both
}
