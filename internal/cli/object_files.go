package cli

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/spread"
	"github.com/cnsbench/cnsbench/internal/run"
)

// otherFiles are those that a process has open beside the connections of its
// workers: timers, the bundle's, its streams.
const otherFiles = run.PreciseTimers + 36

// checkOpenFiles returns an error if a stage needs more open files than this process may have, where that many shards
// divide the workers. The runtime has raised the soft limit to the hard one.
func checkOpenFiles(w *model.Workload, parts int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	return enoughFiles(w, parts, limit.Cur)
}

func enoughFiles(w *model.Workload, parts int, limit uint64) error {
	stage, workers, most := "", 0, 0
	for i := range w.Stages {
		s := &w.Stages[i]
		all, files := 0, 0
		for j := range s.Works {
			n := (s.Works[j].Workers + parts - 1) / parts
			all, files = all+n, files+n*filesOf(&s.Works[j])
		}
		if files > most {
			stage, workers, most = s.Name, all, files
		}
	}
	if need := most + otherFiles; most > 0 && uint64(need) > limit {
		return fmt.Errorf("stage %s has %d workers, which need %d open files with all else, and this process may "+
			"have %d: raise its hard limit (ulimit -n %d as root, LimitNOFILE of a service), or give it fewer workers",
			stage, workers, need, limit, need)
	}
	return nil
}

// filesOf is how many files a worker has open at the same time: its connections, or
// the object's, and what it sends.
func filesOf(w *model.Work) int {
	n := 1
	for i := range w.Ops {
		n = max(n, w.Ops[i].Connections())
	}
	n *= spread.Connections(w.Store.Settings)
	if w.Kind == model.Delay || backend.Traits(w.Store.Kind).Transient {
		n = 0
	}
	for i := range w.Ops {
		if w.Ops[i].Files != "" {
			return n + 1
		}
	}
	return n
}

// maxObjectFile bounds a workload's file.
const maxObjectFile = 64 << 20

// loadObject reads a workload and reports its problems. Its works may name hosts.
func loadObject(s *streams, file string, hosts []string) (*model.Workload, []byte, error) {
	data, err := readObjectFile(file)
	if err != nil {
		return nil, nil, err
	}
	if err := notXML(file, data); err != nil {
		return nil, nil, err
	}
	opener := backend.Opener{Getenv: os.Getenv}
	w, problems := cosbench.Parse(data, cosbench.Options{Getenv: os.LookupEnv, Hosts: hosts, Secrets: opener.Secrets})
	for _, p := range problems {
		fmt.Fprintf(s.err, "%s:%s\n", file, p)
	}
	if problems.Fatal() {
		return nil, nil, fmt.Errorf("%s cannot be run", file)
	}
	return w, data, nil
}
