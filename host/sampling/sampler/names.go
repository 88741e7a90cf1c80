package sampler

import (
	"cmp"
	"strconv"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/internal/lazyregexp"
)

// The names that runtimes give to control groups.
var (
	// "docker-<id>.scope", "/docker/<id>", "cri-containerd-<id>.scope", "crio-<id>",
	// "libpod-<id>": 64 hexadecimal digits; "/lxc/<name>".
	containerID = lazyregexp.New(`(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)`)
	lxcName     = lazyregexp.New(`/lxc(?:\.payload)?[./]([^/]+)`)
	// "/kubepods/burstable/pod<uid>/…", "kubepods-besteffort-pod<uid>.slice", with _
	// for - in the names of systemd.
	podUID = lazyregexp.New(`(?:^|[/-])pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	// "/slurm/uid_0/job_12/step_0", "slurmstepd.scope/job_12/step_0"
	slurmJob = lazyregexp.New(`/slurm[^/]*(?:/[^/]+)*?/job_(\d+)`)
	rayActor = lazyregexp.New(`^ray::([A-Za-z_][\w.]*)`)
)

// place fills in where a process runs, by the text of its file cgroup and its environment.
func place(p *sample.Process, groups string, environ map[string]string) {
	p.Container, p.Pod, p.Job, p.Actor, p.Rank, p.RayKills = nil, "", "", "", nil, nil
	if m := containerID.FindStringSubmatch(strings.ReplaceAll(groups, "\n", "/")); m != nil {
		id := m[1][:12] // as docker and crictl print it
		p.Container = &id
	} else if m := lxcName.FindStringSubmatch(groups); m != nil {
		p.Container = &m[1]
	}
	if m := podUID.FindStringSubmatch(groups); m != nil {
		p.Pod = strings.ReplaceAll(m[1], "_", "-")
	}
	if m := slurmJob.FindStringSubmatch(groups); m != nil {
		p.Job = m[1]
	}
	if m := rayActor.FindStringSubmatch(p.Command); m != nil {
		p.Actor = m[1]
		p.RayKills = rayKills(environ)
	}
	_, inPod := environ["KUBERNETES_SERVICE_HOST"]
	if name := environ["HOSTNAME"]; name != "" && (inPod || p.Pod != "") {
		p.Pod = name // which is that of the pod, unless it states otherwise
	}
	p.Job = cmp.Or(p.Job, environ["SLURM_JOB_ID"])
	p.Rank = procfs.Rank(environ)
}

// rayKills is the share of memory from which Ray kills a worker, by the environment that it
// has from Ray; nil if Ray does not watch memory.
func rayKills(environ map[string]string) *float64 {
	share := 0.95 // unless it is set
	if environ["RAY_memory_monitor_refresh_ms"] == "0" {
		return nil
	}
	if text, ok := environ["RAY_memory_usage_threshold"]; ok {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(0 < x && x <= 1) {
			return nil
		}
		share = x
	}
	return &share
}
