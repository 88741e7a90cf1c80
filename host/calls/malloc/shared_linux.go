//go:build amd64 || arm64

package malloc

import (
	"math"
	"sync/atomic"
)

// The memory that is shared with the programs that are sampled, as in c/shared.h.
const (
	entries  = 1 << 15
	requests = 64
	reserved = 1 // the address of an entry that is being filled
)

// The states of a request.
const (
	free = iota
	filling
	waiting
	taken
	answered
	left
)

type request struct {
	state    atomic.Uint32
	pid, tid uint32
	entry    uint32
	born     uint64
	self     uint64
	pthread  uint64
	ip       uint64
	sp, bp   uint64
	inUse    uint64
	_        [7]uint64
}

type entry struct {
	bytes    uint64
	interval uint64
	born     uint64
	pid      uint32
	stack    atomic.Uint32
}

type shared struct {
	token     uint64
	interval  atomic.Uint64
	began     atomic.Uint32
	asked     atomic.Uint32
	dropped   atomic.Uint64
	_         [12]uint64
	requests  [requests]request
	addresses [entries]atomic.Uint64
	entries   [entries]entry
}

// of returns what one sample stands for: an allocation of so many bytes is sampled with
// the chance 1-exp(-bytes/interval).
func of(bytes, interval float64) sum {
	chance := -math.Expm1(-bytes / max(interval, 1))
	n := 1 / max(chance, 1e-9)
	return sum{bytes * n, n, bytes * bytes * n * (n - 1)}
}
