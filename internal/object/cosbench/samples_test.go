package cosbench_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/filestore"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/nullstore"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// conflicts are samples whose reads and deletes of one range of objects meet, as their comments say.
var conflicts = map[string]bool{"swift-backup.xml": true}

// TestSamplesRun checks that each accepted sample runs, shortened, without a failed operation. A file store
// replaces the servers: it keeps the objects, so that wrong containers of a stage and leftovers are detected.
func TestSamplesRun(t *testing.T) {
	files, err := filepath.Glob("testdata/samples/*.xml")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w, problems := cosbench.Parse(data, cosbench.Options{})
		if problems.Fatal() {
			continue
		}
		ran++
		t.Run(filepath.Base(file), func(t *testing.T) {
			shorten(w, sources(t))
			root := t.TempDir()
			clock := op.NewClock()
			r := loadtest.Run(t.Context(), loadgen.Config{Workload: w, Clock: clock, Seed: 1,
				Grace: 10 * time.Second,
				Open: func(s *model.Store) (client.Store, error) {
					if s.Kind == "null" {
						return &nullstore.Store{Size: 4096, Clock: clock}, nil
					}
					return filestore.New(map[string]string{"root": root}, clock)
				}})
			if r.Err != nil || len(r.Stages) != len(w.Stages) {
				t.Errorf("%d of %d stages: %v", len(r.Stages), len(w.Stages), r.Err)
			}
			disposed := false
			for _, s := range r.Stages {
				for i := range s.Works {
					disposed = disposed || s.Works[i].Work.Kind == model.Dispose
					if !conflicts[filepath.Base(file)] {
						without(t, s.Name, &s.Works[i])
					}
				}
			}
			if left, err := os.ReadDir(root); disposed && len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
	if ran < 24 {
		t.Errorf("only %d samples run", ran)
	}
}

// without fails the test if an operation failed or if there was none.
func without(t *testing.T, stage string, w *loadgen.WorkResult) {
	t.Helper()
	figures, err := w.Figures()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.OK == 0 || f.Failed+f.Lost > 0 {
			t.Errorf("%s: %s: %d operations, failed are %v", stage, f.Name, f.OK, f.Failures)
		}
	}
}

// sources returns a directory of files for file writes.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shorten reduces a workload without a change of its structure: containers up to the fourth, every tenth
// object, a thousandth of a megabyte, 0.4 s.
func shorten(w *model.Workload, files string) {
	for i := range w.Stages {
		s := &w.Stages[i]
		s.Closure = 0
		for j := range s.Works {
			work := &s.Works[j]
			work.RampUp, work.RampDown, work.Runtime = 0, 0, min(work.Runtime, 400*time.Millisecond)
			work.TotalBytes = min(work.TotalBytes, 1000)
			for k := range work.Ops {
				o := &work.Ops[k]
				o.Containers.Low, o.Containers.High = min(o.Containers.Low, 4), min(o.Containers.High, 4)
				if o.Objects.Kind != 0 {
					o.Objects.Low, o.Objects.High = (o.Objects.Low+9)/10, (o.Objects.High+9)/10
				}
				o.Sizes.Unit = min(o.Sizes.Unit, 1000)
				if o.Sizes.Unit > 0 && o.Sizes.Max() > 64<<20 {
					o.Sizes.Unit = 1
				}
				o.Length, o.Within = o.Length/1000/payload.Block*payload.Block, o.Within/1000
				if o.Files != "" {
					o.Files = files
				}
			}
		}
	}
}
