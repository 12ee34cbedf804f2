package cli

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// TestActionRemovedAll checks that the containers of an action count as removed only if every part of its workload
// reports that it completed its share.
func TestActionRemovedAll(t *testing.T) {
	work := func(kind model.WorkKind, failures int) model.Stage {
		o := model.Op{Type: model.MakeContainer, Name: string(kind), ContainerName: model.Name{Prefix: "c"},
			Containers: selector.Spec{Kind: selector.Range, Low: 1, High: 2}}
		return model.Stage{Name: string(kind), Works: []model.Work{{Name: string(kind), Kind: kind, Workers: 1,
			MaxFailures: failures, Store: model.Store{Kind: "s3"}, Ops: []model.Op{o}}}}
	}
	empty := func(kind model.WorkKind) model.Stage { return model.Stage{Name: string(kind)} }
	const ended, done = `{"ended":{"stage":0,"at":1}}` + "\n" + `{"ended":{"stage":1,"at":2}}` + "\n",
		`{"done":{}}` + "\n"
	file := func(index, parts int, rest string, stages ...model.Stage) *fstest.MapFile {
		head, err := json.Marshal(model.Workload{Name: "w", Stages: stages})
		if err != nil {
			t.Fatal(err)
		}
		return &fstest.MapFile{Data: fmt.Appendf(nil,
			`{"head":{"format":1,"index":%d,"parts":%d,"workload":%s}}`+"\n%s", index, parts, head, rest)}
	}
	first := file(0, 2, ended+done, work(model.Init, 0), empty(model.Dispose))
	second := func(rest string, dispose model.Stage) *fstest.MapFile {
		return file(1, 2, rest, empty(model.Init), dispose)
	}
	const name = "raw/objects-%d/object/output/part.objects.jsonl"
	for _, tt := range []struct {
		name  string
		parts []*fstest.MapFile
		gone  bool
	}{
		{"both did theirs", []*fstest.MapFile{first, second(ended+done, work(model.Dispose, 0))}, true},
		{"one left no file", []*fstest.MapFile{first}, false},
		{"no file", nil, false},
		{"nobody disposes", []*fstest.MapFile{first, second(ended+done, empty(model.Dispose))}, false},
		{"it accepts failures", []*fstest.MapFile{first, second(ended+done, work(model.Dispose, 1))}, false},
		{"torn", []*fstest.MapFile{first, second(ended, work(model.Dispose, 0))}, false},
		{"did not end the stage", []*fstest.MapFile{first, second(done, work(model.Dispose, 0))}, false},
		{"failed", []*fstest.MapFile{first, second(ended+`{"done":{"err":"409"}}`+"\n", work(model.Dispose, 0))},
			false},
		{"interrupted", []*fstest.MapFile{first, second(ended+`{"done":{"interrupted":true}}`+"\n",
			work(model.Dispose, 0))}, false},
		{"skipped", []*fstest.MapFile{first,
			second(`{"ended":{"stage":0,"at":1}}`+"\n"+`{"ended":{"stage":1,"at":2,"skipped":true}}`+"\n"+done,
				work(model.Dispose, 0))}, false},
	} {
		bundle := fstest.MapFS{"raw/objects-two-0/object/output/part.objects.jsonl": second(ended,
			empty(model.Dispose))} // a part of another action
		for i, p := range tt.parts {
			bundle[fmt.Sprintf(name, i)] = p
		}
		if got := actionRemovedAll(bundle, "objects"); got != tt.gone {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.gone)
		}
	}
}
