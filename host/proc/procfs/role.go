package procfs

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
)

var (
	// ownTitle matches how servers title their processes: "VLLM::EngineCore",
	// "sglang::scheduler_TP0", "ray::Worker.step()".
	ownTitle = lazyregexp.New(`^\s*([A-Za-z0-9_]+::[^\s\[(]+)`)
	// daemonTitle matches how daemons do: "nginx: worker process", "postgres:
	// checkpointer".
	daemonTitle = lazyregexp.New(`^[A-Za-z0-9_.-]+: ([^/]+)`)
	rankOption  = lazyregexp.New(`--(?:node[-_]|local[-_]|tp[-_]|dp[-_]|data[-_]parallel[-_])?rank[= ](\d+)`)
	// shell matches the names of programs that start what has nothing in common.
	shell = lazyregexp.New(`^(?:ba|da|z|k|fi|c|tc)?sh$|^(?:tmux|screen|systemd|init|tini|sshd|containerd|conmon|docker)`)
	// Ranks are the variables in which launchers give a process its place in a job:
	// torchrun's, Open MPI's, PMI's and Slurm's, and its place on the machine.
	Ranks = []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK"}
)

// Launch is a text that is alike for the processes of one job on a machine, and of no other job: it
// is made of the variables that launchers set, or of the process that started them. It is empty if
// these do not show it, as of programs that a shell starts side by side.
func (p Process) Launch(environment map[string]string) string {
	status, err := p.Status()
	if err != nil {
		return ""
	}
	parent, _ := Process(status.Parent).Status()
	network, _ := os.Readlink(p.file("ns/net")) // of which an address is
	return launch(environment, p.Command(), network, status.Parent, parent.Name)
}

func launch(environment map[string]string, command, network string, parent int, parentName string) string {
	if environment["WORLD_SIZE"] == "1" {
		return ""
	}
	sum, known := fnv.New64a(), false
	for _, of := range launches {
		value := environment[of.variable]
		fmt.Fprintf(sum, "%s\x00", value)
		known = known || value != "" && of.alone
	}
	if !known {
		started := Rank(environment) != nil || ownTitle.MatchString(command) || strings.Contains(command, "multiprocessing.")
		if !started || parent <= 1 || shell.MatchString(parentName) {
			return ""
		}
		network = strconv.Itoa(parent)
	}
	fmt.Fprint(sum, network)
	return fmt.Sprintf("%x", sum.Sum64())
}

// launches are variables that launchers set alike for all processes of a job. Those that are alone
// tell it from any other job on the machine.
var launches = []struct {
	variable string
	alone    bool
}{
	{"MASTER_ADDR", false}, {"MASTER_PORT", true}, {"PMIX_NAMESPACE", true}, {"RAY_JOB_ID", true},
	{"SLURM_JOB_ID", false}, {"SLURM_STEP_ID", false}, {"TORCHELASTIC_RUN_ID", false}, {"TORCHELASTIC_RESTART_COUNT", false}, {"WORLD_SIZE", false},
}

// Rank is the place in its job that a process has by its environment; nil if it has none.
func Rank(environment map[string]string) *int {
	for _, of := range Ranks {
		if rank, err := strconv.Atoi(environment[of]); err == nil && rank >= 0 {
			return &rank
		}
	}
	return nil
}

// helpers are processes that the libraries of Python and PyTorch start, identified by a
// part of their command line.
var helpers = []struct{ part, role string }{
	{"multiprocessing.resource_tracker", "resource tracker"},
	{"multiprocessing.forkserver", "fork server"},
	{"multiprocessing.spawn", "spawned worker"},
	{"torch/_inductor/compile_worker", "compile worker"},
}

// maxRole bounds a role, in bytes.
const maxRole = 48

// Role returns what a process is for, according to its command line and environment,
// such as "rank 3" or "VLLM::EngineCore"; empty if they do not show it.
func Role(command string, environment map[string]string) string {
	var parts []string
	if m := ownTitle.FindStringSubmatch(command); m != nil {
		parts = append(parts, m[1])
	} else if m := daemonTitle.FindStringSubmatch(command); m != nil {
		parts = append(parts, strings.TrimSpace(m[1]))
	}
	for _, h := range helpers {
		if strings.Contains(command, h.part) {
			parts = append(parts, h.role)
		}
	}
	if m := rankOption.FindStringSubmatch(command); m != nil {
		parts = append(parts, "rank "+m[1])
	} else {
		for _, name := range Ranks {
			if rank := environment[name]; rank != "" && strings.Trim(rank, "0123456789") == "" {
				parts = append(parts, "rank "+rank)
				break
			}
		}
	}
	role := strings.Join(parts, ", ")
	return strings.ToValidUTF8(role[:min(len(role), maxRole)], "")
}
