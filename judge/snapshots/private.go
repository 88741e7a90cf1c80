package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/units"
)

// privateShare is the share of reserved memory in private pools that is reported even if
// all of it is in use: it explains what the rest of the program cannot use.
const privateShare = 0.20

// private finds memory that only CUDA graphs, or code inside a MemPool, can use.
func private(s *subject) []finding.Finding {
	p, device, d := s.process, s.device, s.newest
	var sum timeline.PrivatePool
	for _, q := range d.Private {
		sum.Reserved += q.Reserved
		sum.Active += q.Active
		sum.Free += q.Free
	}
	severity := severityOf(sum.Free, d.Reserved)
	large := share(sum.Reserved, d.Reserved) >= privateShare && sum.Reserved >= minNote
	if severity == "" && !large {
		return nil
	}
	shared, own := sharable(d.Private)
	if severity = finding.Info; severityOf(shared, d.Reserved) == finding.Warning {
		severity = finding.Warning // the rest is what graphs and pools are for
	}
	e := &finding.PrivatePoolsEvidence{
		PrivateReservedBytes: sum.Reserved, PrivateActiveBytes: sum.Active, PrivateFreeBytes: sum.Free,
		ReservedBytes: d.Reserved, Pools: poolsOf(d.Private),
	}
	f := finding.Finding{
		Kind: finding.PrivatePools, Severity: severity, Confidence: 1, Device: &device, Process: p.Name,
		Title: fmt.Sprintf("private pools hold %s of %s reserved, of which %s is free and serves no other pool",
			units.Bytes(sum.Reserved), units.Bytes(d.Reserved), units.Bytes(sum.Free)),
		Basis: "the pool that each segment belongs to", Evidence: e,
	}
	f.Brief.Title = fmt.Sprintf("private pools: %s of %s is free and serves no other pool", units.Bytes(sum.Free), units.Bytes(sum.Reserved))
	a := &finding.Account{Bytes: d.Reserved, Name: "reserved"}
	a.Add(sum.Free, "free in private pools")
	a.Add(sum.Active, "used there")
	if a.Rest("in other pools") {
		f.Brief.Account = a
	}
	addPools(&f, d.Private)
	if own > 1 && severityOf(shared, d.Reserved) != "" {
		e.SharableBytes = shared
		f.Detail = append(f.Detail, fmt.Sprintf("%d CUDA graphs have a pool each; in a shared pool, up to %s less would lie free", own, units.Bytes(shared)))
		f.Remedies = append(f.Remedies, finding.Remedy{Kind: "code", Setting: "pool = torch.cuda.graph_pool_handle()\nwith torch.cuda.graph(g, pool=pool): ...",
			Text: "capture graphs into one pool, the largest first", Detail: "if they never run at the same time, and none needs another's output"})
	}
	f.Remedies = append(f.Remedies, privateRemedies(d)...)
	return []finding.Finding{f}
}

// privateRemedies are what to do about free memory in private pools, if there is a lot of
// it: a pool that is in use serves its purpose.
func privateRemedies(d *digest.Device) (out []finding.Remedy) {
	var ofGraphs, ofPools int64 // free
	for i := range d.Private {
		if q := &d.Private[i]; q.ByGraph() {
			ofGraphs += q.Free
		} else {
			ofPools += q.Free
		}
	}
	if severityOf(ofGraphs, d.Reserved) != "" {
		out = append(out, finding.CodeChange("capture fewer or smaller graphs").
			Because("replays compute in the free memory of a graph's pool; empty_cache() returns it after all graphs of the pool are deleted"))
	}
	if severityOf(ofPools, d.Reserved) != "" {
		out = append(out, finding.CodeChange("allocate under torch.cuda.use_mem_pool nothing short-lived").
			Because("free memory of a MemPool serves only the pool, until it and its tensors are deleted. The same holds for graphs that share a graph_pool_handle()"))
	}
	return out
}

// privateFree is the free memory in private pools.
func privateFree(d *digest.Device) (bytes int64) {
	for _, q := range d.Private {
		bytes += q.Free
	}
	return bytes
}

// sharable is how much less would be free, at best, if the graphs that have pools of
// their own shared one, and how many such pools there are.
func sharable(pools []timeline.PrivatePool) (bytes int64, graphs int) {
	var most int64
	for i := range pools {
		if q := &pools[i]; q.ByGraph() {
			graphs++
			bytes += q.Free
			most = max(most, q.Free)
		}
	}
	return bytes - most, graphs
}

// addPools states what the largest pools hold, and where it was allocated.
func addPools(f *finding.Finding, pools []timeline.PrivatePool) {
	const maxPools = 3
	for i := range pools {
		if i == maxPools {
			f.Detail = append(f.Detail, "and "+units.Plural(int64(len(pools)-maxPools), "smaller pool"))
			break
		}
		q := &pools[i]
		maker := "of torch.cuda.MemPool or graph_pool_handle()"
		if q.ByGraph() {
			maker = "of a CUDA graph"
		}
		text := fmt.Sprintf("pool %s, %s: %s reserved, %s of it free", q.Pool, maker, units.Bytes(q.Reserved), units.Bytes(q.Free))
		if site := siteOf(q.Took); site != nil {
			text += ", taken at " + short(q.Took)
		}
		if q.Active == 0 {
			text += "; nothing in it is active: the file does not show whether a graph will replay into it"
		}
		f.Detail = append(f.Detail, text)
	}
}

func poolsOf(pools []timeline.PrivatePool) (out []finding.PrivatePool) {
	for i := range pools {
		q := &pools[i]
		out = append(out, finding.PrivatePool{
			Pool: q.Pool.String(), Segments: q.Segments, ReservedBytes: q.Reserved, ActiveBytes: q.Active, FreeBytes: q.Free,
			Site: siteOf(q.Took),
		})
	}
	return out
}
