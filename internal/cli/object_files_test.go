package cli

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/model"
)

func TestEnoughFiles(t *testing.T) {
	work := func(kind string, workers int, ops ...model.Op) model.Work {
		return model.Work{Kind: model.Normal, Workers: workers, Store: model.Store{Kind: kind}, Ops: ops}
	}
	w := &model.Workload{Stages: []model.Stage{
		{Name: "small", Works: []model.Work{work("s3", 10)}},
		{Name: "wide", Works: []model.Work{work("s3", 300), work("swift", 200), work("null", 9000)}},
		{Name: "files", Works: []model.Work{work("s3", 200, model.Op{Files: "/dir"})}},
	}}
	for _, tt := range []struct {
		parts int
		limit uint64
		says  string // part of the error; empty: the limit suffices
	}{
		{1, 1024, ""},
		{1, 500 + otherFiles, ""},
		{1, 500 + otherFiles - 1, "stage wide has 9500 workers, which need 600 open files with all else, and this " +
			"process may have 599: raise its hard limit (ulimit -n 600 as root"},
		{2, 250 + otherFiles, ""},
		{2, 250 + otherFiles - 1, "need 350 open files"},
	} {
		err := enoughFiles(w, tt.parts, tt.limit)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%d parts, %d files: %v, want %q", tt.parts, tt.limit, err, tt.says)
		}
	}
	if err := enoughFiles(&model.Workload{Stages: []model.Stage{{Works: []model.Work{work("null", 1e6)}}}}, 1,
		256); err != nil {
		t.Errorf("workers without connections: %v", err)
	}
	if err := checkOpenFiles(w, 1); err != nil && !strings.Contains(err.Error(), "raise its hard limit") {
		t.Error(err)
	}
}
