package procfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

func TestFindCgroup(t *testing.T) {
	const (
		older   = "33 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n36 31 0:34 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
		unified = "25 18 0:24 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		other   = "25 18 0:24 /../docker-2.scope /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		above   = "25 18 0:24 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		part    = "25 18 0:24 /docker/1 /my\\040groups rw - cgroup2 cgroup2 rw\n"
	)
	for _, c := range []struct {
		name, groups, mounts string
		want                 *Cgroup
	}{
		{"older", "5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/u\n", older, &Cgroup{"/sys/fs/cgroup/memory/a/b", false}},
		{"unified", "0::/system.slice/x.service\n", unified, &Cgroup{"/sys/fs/cgroup/system.slice/x.service", true}},
		{"both, memory in the older", "4:memory:/a\n0::/u\n", older + unified, &Cgroup{"/sys/fs/cgroup/memory/a", false}},
		{"both, memory in the unified", "4:cpu:/a\n0::/u\n", older + unified, &Cgroup{"/sys/fs/cgroup/u", true}},
		{"part of the hierarchy", "0::/docker/1/deep\n", part, &Cgroup{"/my groups/deep", true}},
		{"the whole, of which a part is mounted", "0::/\n", part, nil},
		{"of a container, seen from inside", "0::/\n", unified, &Cgroup{"/sys/fs/cgroup", true}},
		{"beside the part", "0::/docker/12\n", part, nil},
		{"of another container, seen from inside", "0::/../docker-2.scope\n", unified, nil},
		{"the same, in a mount of that", "0::/../docker-2.scope/a\n", other, &Cgroup{"/sys/fs/cgroup/a", true}},
		{"of another container, in a mount that begins above both", "0::/../../etc\n", above, &Cgroup{"/sys/fs/cgroup/etc", true}},
		{"both, the older not mounted", "4:memory:/a\n0::/u\n", unified, nil},
		{"not mounted", "4:memory:/a\n", unified, nil},
		{"nothing", "x\n", "y\n", nil},
	} {
		got, ok := cgroupIn(1, c.groups, c.mounts, "/nowhere") // where no files are
		if c.want != nil {
			c.want.Folder = "/nowhere" + c.want.Folder
		}
		if ok != (c.want != nil) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestFindCgroupAbove looks for a group whose names are not known, because the mount begins
// above the group at which the namespace begins.
func TestFindCgroupAbove(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const host = "25 18 0:24 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	write("proc/1/mountinfo", host)
	write("proc/self/mountinfo", "25 18 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	tree := filepath.Join(root, "proc/1/root/sys/fs/cgroup")
	for name, pid := range map[string]string{"pods/a": "", "pods/a/job": "7\n", "pods/b": "8\n", "pods/b/job": "88\n9\n", "system/b/job": "78\n"} {
		write("proc/1/root/sys/fs/cgroup/"+name+"/cgroup.procs", pid)
	}
	write("proc/1/root/sys/fs/cgroup/pods/a/memory.stat", "anon 1\n") // and not in its job
	for _, c := range []struct {
		pid          int
		groups, want string
	}{
		{8, "0::/../b\n", "pods/b"},
		{9, "0::/../b/job\n", "pods/b/job"},
		{7, "0::/../a/job\n", "pods/a"},
		{78, "0::/../../system/b/job\n", "system/b/job"},
		{10, "0::/../b\n", ""},
		{8, "0::/../../../b\n", ""},
	} {
		got, ok := FindCgroup(filepath.Join(root, "proc"), c.pid, c.groups)
		if ok != (c.want != "") || ok && got.Folder != filepath.Join(tree, c.want) {
			t.Errorf("%d in %q: %+v, want %q", c.pid, c.groups, got, c.want)
		}
	}
}

func TestGroupMemory(t *testing.T) {
	kernel, used, limit := uint64(18), uint64(100), uint64(4096)
	for _, c := range []struct {
		name  string
		v2    bool
		files map[string]string
		want  GroupMemory
	}{
		{"older", false, map[string]string{
			"memory.stat": "cache 1\nrss 1\ntotal_cache 40\ntotal_rss 20\ntotal_shmem 15\ntotal_inactive_file 7\n", "memory.usage_in_bytes": "100\n",
			"memory.limit_in_bytes": "9223372036854771712\n", "memory.kmem.usage_in_bytes": "18\n",
		}, GroupMemory{Used: used, Anon: 20, Shared: 15, Cache: 25, InactiveFile: 7, Kernel: &kernel}},
		{"older, kernel not counted", false, map[string]string{
			"memory.stat": "total_cache 40\ntotal_rss 20\n", "memory.usage_in_bytes": "100\n", "memory.limit_in_bytes": "4096\n",
		}, GroupMemory{Used: used, Anon: 20, Cache: 40, Limit: &limit}},
		{"unified", true, map[string]string{
			"memory.stat": "anon 20\nfile 40\nkernel 16\nsock 2\nshmem 15\ninactive_file 7\n", "memory.current": "100\n", "memory.max": "max\n",
		}, GroupMemory{Used: used, Anon: 20, Shared: 15, Cache: 25, InactiveFile: 7, Kernel: &kernel}},
		{"unified, older kernel", true, map[string]string{
			"memory.stat": "anon 20\nfile 40\nkernel_stack 4\npagetables 5\npercpu 1\nslab 6\nsock 2\nshmem 15\n", "memory.current": "100\n", "memory.max": "4096\n",
		}, GroupMemory{Used: used, Anon: 20, Shared: 15, Cache: 25, Kernel: &kernel, Limit: &limit}},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := (&Cgroup{dir, c.v2}).Memory()
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "memory.stat"), []byte("anon 1\nfile x\n"), 0o600)
	if _, err := (&Cgroup{dir, true}).Memory(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken line: got the error %v", err)
	}
}

func TestOwnCgroup(t *testing.T) {
	g, err := Process(os.Getpid()).Cgroup()
	if errors.Is(err, errNoCgroup) || errors.Is(err, fs.ErrNotExist) {
		live.Missing(t, "a control group that counts memory", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := g.Memory()
	if errors.Is(err, fs.ErrNotExist) {
		live.Missing(t, "a control group whose files are visible", err)
	}
	if err != nil || m.Used == 0 || m.Anon+m.Cache+m.Shared > 2*m.Used {
		t.Errorf("%s: got %+v, %v", g.Folder, m, err)
	}
}

// TestKills reads the count of kills in the files of both hierarchies.
func TestKills(t *testing.T) {
	for _, c := range []struct {
		name, text string
		v2         bool
		want       uint64
		ok         bool
	}{
		{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", false, 7, true},
		{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", false, 0, false}, // before Linux 4.13
		{"memory.events", "low 0\nhigh 3\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n", true, 1, true},
		{"another", "", true, 0, false},
	} {
		g := &Cgroup{Folder: t.TempDir(), v2: c.v2}
		if err := os.WriteFile(filepath.Join(g.Folder, c.name), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := g.Kills(); (n != nil) != c.ok || n != nil && *n != c.want {
			t.Errorf("%s: %v", c.text, n)
		}
	}
}
