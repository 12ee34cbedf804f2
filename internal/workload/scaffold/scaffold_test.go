package scaffold

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/library"
)

// TestTemplates checks that each template is an entry of the given name whose variables are typed and described.
func TestTemplates(t *testing.T) {
	folders, err := fs.ReadDir(library.Templates, folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != len(Templates()) {
		t.Errorf("%d templates are listed, and there are %d", len(Templates()), len(folders))
	}
	for _, tt := range Templates() {
		t.Run(tt.Name, func(t *testing.T) {
			files, err := Files(tt.Name, "mine")
			if err != nil {
				t.Fatal(err)
			}
			folder := fstest.MapFS{}
			for name, text := range files {
				folder["mine/"+name] = &fstest.MapFile{Data: text}
				if strings.Contains(string(text), placeholder) {
					t.Errorf("%s has the name %s", name, placeholder)
				}
			}
			e, err := workload.FromFolder(folder, "mine", "here")
			if err != nil {
				t.Fatal(err)
			}
			if e.Name != "mine" || e.Description == "" || len(e.Tests) == 0 {
				t.Errorf("entry %q, described by %q, with %d values for tests", e.Name, e.Description, len(e.Tests))
			}
			for _, v := range e.Variables() {
				if _, ok := e.Types[v]; !ok || e.Meanings[v] == "" {
					t.Errorf("variable %s has type %q and the description %q", v, e.Types[v], e.Meanings[v])
				}
			}
			values, _ := e.Resolve(map[string]string{"storageClass": "hostdir"})
			for engine, cluster := range map[string]bool{"local": false, "kubernetes": true} {
				if _, err := e.Render(workload.Params{Vars: values, Action: "mine", Count: 1, RunID: "run", Engine: engine,
					Cluster: cluster}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "my-db2", strings.Repeat("a", 40)} {
		if err := CheckName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "A", "a_b", "2a", "-a", "a-", "a b", "../a", "a/b",
		"a\n", "ä", strings.Repeat("a", 41)} {
		if CheckName(bad) == nil {
			t.Errorf("name %q is accepted", bad)
		}
	}
	for _, bad := range []string{"", "none", "..", "script/run.sh", "../workloads/fio"} {
		if _, err := Files(bad, "mine"); err == nil {
			t.Errorf("template %q is accepted", bad)
		}
	}
}
