package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// command runs a command line and returns its exit code and output.
func command(args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = Main(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// TestObjectCleanup checks that the containers that a run leaves can be removed by its workload file or by its bundle.
// The run leaves them because it writes objects that its cleanup stage does not cover.
func TestObjectCleanup(t *testing.T) {
	const strays = `<work name="main" workers="3" totalOps="40"><operation type="write" ratio="100" config="containers=u(1,2);oprefix=stray-;objects=s(1,1000);sizes=c(8)KB"/></work>`
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "a bundle")
	file := filepath.Join(t.TempDir(), "strays.xml")
	if err := os.WriteFile(file, []byte(objectXML(root, strays)), 0o644); err != nil {
		t.Fatal(err)
	}
	there := func() int {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	expect := func(want int, words string, args ...string) {
		t.Helper()
		if code, out, errs := command(args...); code != want || !strings.Contains(out+errs, words) {
			t.Errorf("%v: exit %d, want %d and %q\n%s%s", args, code, want, words, out, errs)
		}
	}
	for _, what := range []string{dir, file} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		expect(exitFailed, "\ncontainers may be left: cnsbench object cleanup '"+dir+"'\n", "object", "run", file,
			"--out", dir)
		if there() != 2 {
			t.Fatalf("%d containers are left of the run, want 2", there())
		}
		expect(exitOK, "containers that it made may be left, which are not among them: cnsbench object cleanup "+
			"'"+dir+"'", "cleanup", dir)
		copied := filepath.Join(t.TempDir(), "copy") // somebody else's may claim the ID of the run
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		expect(exitUsage, "is not the bundle of run", "object", "cleanup", copied)
		expect(exitOK, "2 containers there, 0 not; nothing was removed", "object", "cleanup", "--dry-run", what)
		expect(exitOK, "2 containers removed, with 40 objects; 0 not there", "object", "cleanup", what)
		if there() != 0 {
			t.Errorf("%d things are left", there())
		}
		again := []string{"object", "cleanup", what}
		if what == dir { // of which nothing is registered any more
			expect(exitUsage, "is not registered for this user on this machine", again...)
			expect(exitUsage, "add --endpoint", append(again, "--endpoint", root+"x")...)
			again = append(again, "--endpoint", root)
		}
		expect(exitOK, "0 containers removed, with 0 objects; 2 not there", again...)
	}
	theirs := filepath.Join(root, "mycontainers1")
	if err := os.Mkdir(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	expect(exitOK, "mycontainers1 does not carry CNSBench's mark: it is not touched", "object", "cleanup", "--dry-run",
		file)
	expect(exitFailed, "mycontainers1 does not carry CNSBench's mark: it is not touched; if it is not needed, delete",
		"object", "cleanup", file)
	if there() != 1 {
		t.Errorf("%d things are there, want theirs", there())
	}
	expect(exitUsage, "is not a bundle", "object", "cleanup", root)
	expect(exitUsage, "no such file", "object", "cleanup", file+"x")
	expect(exitUsage, "--workers must be at least 1", "object", "cleanup", "--workers", "0", file)
	onlyRead := filepath.Join(t.TempDir(), "read.xml")
	text := `<workload name="r"><storage type="file" config="root=` + root + `"/><workflow><workstage name="main"><work workers="1" totalOps="1"><operation type="read" config="containers=c(1);objects=c(1)"/></work></workstage></workflow></workload>`
	if err := os.WriteFile(onlyRead, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	expect(exitUsage, "it has no work of type init", "object", "cleanup", onlyRead)
}

// TestObjectCleanupOfAStranger checks that no credential is sent to a store that a bundle of somebody else names.
func TestObjectCleanupOfAStranger(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("X-Storage-Url", "http://"+r.Host+"/v1/a")
		w.Header().Set("X-Auth-Token", "t")
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	t.Setenv("OS_PASSWORD", "secret")
	dir := filepath.Join(t.TempDir(), "theirs")
	stage := `<workload name="w"><storage type="swift"/><auth type="swauth" config="username=u;auth_url=` + server.URL +
		`/auth/v1.0"/><workflow><workstage name="init"><work type="init" workers="1" config="containers=r(1,1)"/></workstage></workflow></workload>`
	file := filepath.Join(t.TempDir(), "theirs.xml")
	if err := os.WriteFile(file, []byte(stage), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := command("object", "run", file, "--out", dir); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	// As it arrives from another machine: complete, and unknown here.
	name := filepath.Join(dir, "run.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`"runID": "[0-9a-f]+"`).ReplaceAll(text, []byte(`"runID": "0badc0de"`))
	text = regexp.MustCompile(`"state": "[a-z]+"`).ReplaceAll(text, []byte(`"state": "interrupted"`))
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	requests.Store(0)
	for _, args := range [][]string{{"cleanup", dir}, {"object", "cleanup", dir}, {"object", "cleanup", "--dry-run", dir},
		{"object", "cleanup", dir, "--endpoint", "http://127.0.0.1"}, {"object", "cleanup", "--run", "0badc0de"}} {
		code, out, errs := command(args...)
		if requests.Load() > 0 {
			t.Fatalf("%v sent %d requests\n%s%s", args, requests.Load(), out, errs)
		}
		if args[0] == "object" && (code != exitUsage || !strings.Contains(errs, "not ")) {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
	command("object", "cleanup", dir, "--endpoint", server.URL)
	if requests.Load() == 0 {
		t.Error("the store that the command line names was not asked")
	}
}

// TestNothingIsLeft checks that a run reports possible leftovers only if it did not remove all that it created.
func TestNothingIsLeft(t *testing.T) {
	whole := objectXML(t.TempDir(), mixedWork)
	dispose := regexp.MustCompile(`<workstage name="dispose">.*`)
	for name, tt := range map[string]struct {
		xml  string
		left bool
	}{
		"whole":                {whole, false},
		"keeps its containers": {dispose.ReplaceAllString(objectXML(t.TempDir(), mixedWork), ""), true},
		"disposes of one of two": {strings.ReplaceAll(objectXML(t.TempDir(), mixedWork),
			`type="dispose" workers="1" config="containers=r(1,2)"`,
			`type="dispose" workers="1" config="containers=r(1,1)"`), true},
		"accepts that it disposes not": {strings.ReplaceAll(objectXML(t.TempDir(), mixedWork), `type="dispose"`,
			`type="dispose" afr="1000000"`), true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "bundle")
			if code, out, errs := object(t, tt.xml, "object", "run", "--out", dir); code != exitOK ||
				strings.Contains(out, "may be left") {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			if _, out, errs := command("cleanup", dir); strings.Contains(out, "may be left") != tt.left ||
				strings.Contains(out, "nothing is left of this run") == tt.left {
				t.Errorf("left %v\n%s%s", tt.left, out, errs)
			}
		})
	}
}

func TestMayLeave(t *testing.T) {
	stage := func(kind model.WorkKind) model.Stage { return model.Stage{Works: []model.Work{{Kind: kind}}} }
	w := &model.Workload{Stages: []model.Stage{stage(model.Init), stage(model.Normal), stage(model.Cleanup),
		stage(model.Dispose)}}
	failed := func(i int) oload.StageResult {
		err := errors.New("409")
		return oload.StageResult{Err: err, Works: []oload.WorkResult{{Work: &w.Stages[i].Works[0], Err: err}}}
	}
	done, skipped := oload.StageResult{}, oload.StageResult{Skipped: true}
	inits := func(label string) oload.StageResult {
		cells := oload.Cells{oload.Key{Label: label}: loadtest.NewCell()}
		return oload.StageResult{Works: []oload.WorkResult{{Work: &w.Stages[0].Works[0], Cells: cells}}}
	}
	made, unbegun := inits("200"), oload.StageResult{Err: errors.New("refused")}
	stages := func(s ...oload.StageResult) []oload.StageResult { return s }
	for name, tt := range map[string]struct {
		result oload.Result
		left   bool
	}{
		"all was done":          {oload.Result{Stages: stages(made, done, done, done)}, false},
		"the middle failed":     {oload.Result{Stages: stages(made, failed(1), done, done)}, false},
		"interrupted":           {oload.Result{Stages: stages(made, done, done, done), Interrupted: true}, false},
		"interrupted twice":     {oload.Result{Stages: stages(made, done, skipped, skipped), Aborted: true}, true},
		"while it disposed":     {oload.Result{Stages: stages(made, done, done, done), Aborted: true}, true},
		"cleanup failed":        {oload.Result{Stages: stages(made, done, failed(2), done)}, true},
		"dispose failed":        {oload.Result{Stages: stages(made, done, done, failed(3))}, true},
		"dispose did not begin": {oload.Result{Stages: stages(made, done, done, unbegun)}, true},
		"nothing was made": {oload.Result{Stages: stages(skipped, skipped, skipped, skipped), Aborted: true},
			false},
		"every init was refused": {oload.Result{Stages: stages(inits("403 Denied"), skipped, failed(2), failed(3))},
			false},
		"nobody listened": {oload.Result{Stages: stages(inits("refused"), skipped, failed(2), failed(3))},
			false},
		"an init was unanswered":  {oload.Result{Stages: stages(inits("reset"), skipped, failed(2), failed(3))}, true},
		"the server had an error": {oload.Result{Stages: stages(inits("503"), skipped, failed(2), failed(3))}, true},
	} {
		if got := mayLeave(w, &tt.result); got != tt.left {
			t.Errorf("%s: %v, want %v", name, got, tt.left)
		}
	}
	if got := stopping(w); !strings.Contains(got, "only the stages that clean up remain") {
		t.Error(got)
	}
	w.Stages = w.Stages[:2] // none that cleans up
	w.Stages[0].Works[0].Ops = []model.Op{{Type: model.MakeContainer}}
	if got := stopping(w); !strings.Contains(got, "no stage of the workload cleans up") {
		t.Error(got)
	}
	for _, interrupted := range []bool{false, true} {
		r := oload.Result{Stages: stages(made, done), Interrupted: interrupted}
		if got := mayLeave(w, &r); got != interrupted {
			t.Errorf("no stage cleans up, interrupted %v: %v", interrupted, got)
		}
	}
}
