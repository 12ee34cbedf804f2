package pod

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent/wrap"
	"github.com/cnsbench/cnsbench/internal/engine"
)

// packages maps programs that workloads use to their packages in Debian 12.
var packages = map[string]string{
	"bash":            "bash",
	"bonnie++":        "bonnie++",
	"blktrace":        "blktrace",
	"memcached":       "memcached",
	"mariadb":         "mariadb-client-core",
	"mariadbd":        "mariadb-server-core",
	"curl":            "curl",
	"dbench":          "dbench",
	"dd":              "coreutils",
	"db_bench":        "rocksdb-tools",
	"etcd":            "etcd-server",
	"etcdctl":         "etcd-client",
	"fio":             "fio",
	"git":             "git",
	"ioping":          "ioping",
	"initdb":          "postgresql",
	"jq":              "jq",
	"megahit":         "megahit",
	"mkfs.btrfs":      "btrfs-progs",
	"mkfs.ext4":       "e2fsprogs",
	"mkfs.xfs":        "xfsprogs",
	"nginx":           "nginx",
	"mysqld":          "default-mysql-server",
	"mysql":           "default-mysql-client",
	"mysqladmin":      "default-mysql-client",
	"pgbench":         "postgresql-contrib",
	"postgres":        "postgresql",
	"psql":            "postgresql-client",
	"python3":         "python3",
	"redis-cli":       "redis-tools",
	"redis-server":    "redis-server",
	"rsync":           "rsync",
	"sqlite3":         "sqlite3",
	"stress-ng":       "stress-ng",
	"sysbench":        "sysbench",
	"tar":             "tar",
	"redis-benchmark": "redis-tools",
	"wrk":             "wrk",
}

// sources say where programs are that no package has.
var sources = map[string]string{
	"filebench": "build version 1.5-alpha3 from https://github.com/filebench/filebench/releases: " +
		"./configure CFLAGS='-O2 -fcommon -fno-pie' LDFLAGS=-no-pie && make && make install",
}

// Package returns the Debian package of a program, or "" if it is unknown.
func Package(program string) string { return packages[filepath.Base(program)] }

// missing matches the messages of the agent, sh and bash about missing programs.
var missing = regexp.MustCompile(`there is no program "?([^\s"]+)"?|([\w.+/-]+): (?:command )?not found`)

// Hint returns how to install the missing program that a message names, or "".
func Hint(message string) string {
	m := missing.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	program := m[1] + m[2]
	pkg := Package(program)
	if source := sources[filepath.Base(program)]; source != "" {
		return "no package of Debian has it: " + source
	}
	if pkg == "" {
		return fmt.Sprintf("the local engine runs the host's programs: install %s", filepath.Base(program))
	}
	return fmt.Sprintf("install it with: apt-get install %s", pkg)
}

// MissingProgram is a container's program that this machine lacks.
type MissingProgram struct{ Container, Program, Package string }

// String says what to install.
func (m MissingProgram) String() string {
	return fmt.Sprintf("container %s: there is no program %q; %s", m.Container, m.Program,
		Hint("there is no program "+m.Program))
}

// Missing lists the programs of a pod's containers that this machine lacks, before anything is created. It
// skips programs inside volumes and those that a shell would run.
func Missing(p *corev1.Pod) []MissingProgram {
	var all []MissingProgram
	eachProgram(p, func(c *corev1.Container, _ string, err error) {
		if err != nil {
			all = append(all, MissingProgram{c.Name, c.Command[0], Package(c.Command[0])})
		}
	})
	return all
}

// Programs returns the files of the programs that the containers of a pod start, by the name in the manifest. Programs
// in volumes of the pod are not known before it runs, and missing ones are left out.
func Programs(p *corev1.Pod) map[string]string {
	all := map[string]string{}
	eachProgram(p, func(c *corev1.Container, path string, err error) {
		if err == nil {
			all[c.Command[0]] = path
		}
	})
	return all
}

// eachProgram looks for the programs that the containers of a pod start, except the agent's own and those in volumes.
func eachProgram(p *corev1.Pod, found func(c *corev1.Container, path string, err error)) {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if len(c.Command) == 0 || c.Command[0] == engine.Program || mounted(&c, c.Command[0]) {
			continue
		}
		cmd := wrap.Command{Args: c.Command, Dir: c.WorkingDir}
		for _, e := range c.Env {
			if e.Name == "PATH" && e.ValueFrom == nil {
				cmd.Env = []string{"PATH=" + e.Value}
			}
		}
		path, err := wrap.LookPath(cmd)
		found(&c, path, err)
	}
}

// mounted reports whether a program may be in one of the container's volumes.
func mounted(c *corev1.Container, program string) bool {
	if !filepath.IsAbs(program) {
		program = filepath.Join("/", c.WorkingDir, program)
	}
	for _, m := range c.VolumeMounts {
		if rel, err := filepath.Rel(m.MountPath, program); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
