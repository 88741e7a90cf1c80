package soak

import (
	"fmt"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/units"
)

// The least growth of compiled code by which growth may be that of a cache of kernels: in
// bytes, and as a share of all growth. A kernel takes several times as much beside its code.
const (
	minCode      = 1 << 20
	minCodeShare = 0.05
)

// compiled is the code in memory that processes made themselves, bytes: executable memory
// without a file. The pages of other memory are not looked at, which would hold a server.
func compiled(processes []api.SoakProcess) (bytes int64) {
	for i := range processes {
		p := procfs.Process(processes[i].PID)
		mappings, _ := p.Maps()
		pages, err := p.Pages()
		if err != nil {
			continue
		}
		for k := range mappings {
			if m := &mappings[k]; m.Exec && m.Inode == 0 && m.Path == "" {
				n, _ := pages.Resident(m.Start, m.End)
				bytes += int64(n)
			}
		}
		pages.Close()
	}
	return bytes
}

// compiling doubts a leak of a server that still compiles code: it may keep kernels for each
// new shape of a batch, as oneDNN does, and their number is bounded. The same requests make
// other batches when they are sent again.
func (e *experiment) compiling(j *judged) {
	if j.Verdict != finding.Leaking || len(e.code) < len(e.doc.Waves) {
		return
	}
	from, last := e.life, len(e.doc.Waves)-1
	for i := from; i < last && e.doc.Waves[i].WarmUp; i++ {
		from = i
	}
	before, known := j.level(&e.doc.Waves[from])
	now, ok := j.level(&e.doc.Waves[last])
	code := e.code[last] - e.code[from]
	if !known || !ok || code < minCode || float64(code) < minCodeShare*float64(now-before) {
		return
	}
	j.Verdict, j.Course.Growing = finding.Unknown, undecided
	j.Why = fmt.Sprintf("grows by %s, and it still compiles code: +%s in all. A cache keeps some kernels for new shapes of batches (oneDNN: 1,024), or compiled programs leak. To decide, send more requests%s until it compiles no more", j.Growth, units.Bytes(code), e.longer())
}
