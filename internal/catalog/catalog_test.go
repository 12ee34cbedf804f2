package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/study"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// create begins a bundle.
func create(t *testing.T, path, name string) *bundle.Writer {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := bundle.Create(path, bundle.Run{ID: "id-" + name, Name: name, Engine: "local",
		Clock: bundle.ClockInfo{Start: begin}, EndedAt: op.Never, BarrierAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func closed(t *testing.T, w *bundle.Writer, change func(*bundle.Run)) {
	t.Helper()
	if err := w.Close(change); err != nil {
		t.Fatal(err)
	}
}

func complete(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, 3e9 }

// write writes a file and the directories above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Find lists what there is in every state, once, with what can be read of it.
func TestFind(t *testing.T) {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, name) }
	closed(t, create(t, in("good"), "good"), func(r *bundle.Run) {
		complete(r)
		r.Verdicts = []bundle.Verdict{{Status: bundle.Pass}, {Status: bundle.Weak}, {Status: bundle.Pass}}
		r.Validity = []bundle.Flag{{Name: "note", Severity: "info"}, {Name: "wrong", Severity: "invalid"},
			{Name: "wrong", Severity: "invalid"}}
	})
	// What lies in a bundle is not an entry.
	write(t, in("good/raw/x/run.json"), "{}")
	closed(t, create(t, in("deep/er/failed"), "failed"), func(r *bundle.Run) {
		r.State, r.Reason, r.EndedAt = bundle.Failed, "no space", 1e9
	})
	killed := create(t, in("original"), "killed")
	if err := killed.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(in("killed"), os.DirFS(in("original"))); err != nil {
		t.Fatal(err)
	}
	live := killed // still open
	defer closed(t, live, complete)
	write(t, in("newer/run.json"), `{"format": 99}`)
	write(t, in("torn/run.json"), `{"format": 1, "name": "to`)
	write(t, in(".hidden/run.json"), `{"format": 1}`)
	if err := os.Symlink(in("good"), in("link")); err != nil {
		t.Fatal(err)
	}
	// Neither another way to write a directory nor a link to it lists it again.
	relative, err := filepath.Rel(mustGetwd(t), root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Find([]string{root, in("good"), relative, in("link"), root + "/deep/.."})
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(n int64) *int64 { n *= 1e9; return &n }
	want := []Entry{
		{Path: in("deep/er/failed"), Kind: KindBundle, Name: "failed", RunID: "id-failed", State: "failed",
			DurationNs: seconds(1)},
		{Path: in("good"), Kind: KindBundle, Name: "good", RunID: "id-good", State: "complete", DurationNs: seconds(3),
			Verdict: bundle.Weak, Verdicts: map[bundle.Status]int{bundle.Pass: 2, bundle.Weak: 1},
			Flags: []string{"wrong", "note"}},
		{Path: in("killed"), Kind: KindBundle, Name: "killed", RunID: "id-killed", State: "incomplete"},
		{Path: in("newer"), Kind: KindBroken, Error: "has format 99"},
		{Path: in("original"), Kind: KindBundle, Name: "killed", RunID: "id-killed", State: "running"},
		{Path: in("torn"), Kind: KindBroken, Error: "unexpected end"},
	}
	for i := range want {
		if want[i].Kind == KindBundle {
			want[i].Engine, want[i].Started = "local", begin
		} else if i < len(got) && strings.Contains(got[i].Error, want[i].Error) {
			want[i].Error = got[i].Error
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The trials of a study name it, and it counts those that are complete.
func TestStudy(t *testing.T) {
	root := t.TempDir()
	levels := []study.Level{{Factor: "storageClass", Value: "a"}}
	draws := []study.Level{{Factor: "bs", Value: "4k"}}
	d := &study.Design{Name: "s", Factors: []string{"storageClass"}, Cells: []study.Cell{{Levels: levels}},
		Trials: []study.Trial{{Name: "t1", Repetition: 1, Draws: draws}, {Name: "t2", Repetition: 2},
			{Name: "t3", Repetition: 3}}}
	path := filepath.Join(root, "study")
	begun, err := study.Begin(path, d, study.Occasion{Number: 1, Begun: begin})
	if err != nil {
		t.Fatal(err)
	}
	if err := begun.Close(); err != nil {
		t.Fatal(err)
	}
	closed(t, create(t, filepath.Join(path, "t1"), "b"), complete)
	closed(t, create(t, filepath.Join(path, "t2"), "b"), func(r *bundle.Run) { r.State = bundle.Failed })
	closed(t, create(t, filepath.Join(path, "incomplete", "t3"), "b"), complete) // set aside
	got, err := Find([]string{root})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[0].Kind != KindStudy || got[0].Name != "s" || got[0].Done != 1 || got[0].Trials != 3 ||
		!got[0].Started.Equal(begin) {
		t.Fatalf("entries %+v", got)
	}
	if diff := cmp.Diff(&Trial{Occasion: 1, Block: 1, Repetition: 1, Levels: levels, Draws: draws},
		got[2].Trial); diff != "" {
		t.Errorf("the trial of %s: -want +got:\n%s", got[2].Path, diff)
	}
	for _, e := range got[1:] {
		want := path
		if strings.Contains(e.Path, "incomplete") {
			want = ""
		}
		if e.Study != want {
			t.Errorf("%s is of study %q, want %q", e.Path, e.Study, want)
		}
	}
	write(t, filepath.Join(root, "other", "study.json"), `{"format": 1, "trials": [{"name": "../x"}]}`)
	got, err = Find([]string{filepath.Join(root, "other")})
	if err != nil || len(got) != 1 || got[0].Kind != KindBroken || !strings.Contains(got[0].Error, "invalid trial") {
		t.Errorf("a damaged study is %+v, %v", got, err)
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A directory that is a symbolic link is followed, and the trials of a study in it are counted.
func TestFindLink(t *testing.T) {
	root := t.TempDir()
	d := &study.Design{Name: "s", Cells: []study.Cell{{}}, Trials: []study.Trial{{Name: "t1"}}}
	begun, err := study.Begin(filepath.Join(root, "study"), d, study.Occasion{Number: 1, Begun: begin})
	if err != nil {
		t.Fatal(err)
	}
	if err := begun.Close(); err != nil {
		t.Fatal(err)
	}
	closed(t, create(t, filepath.Join(root, "study", "t1"), "b"), complete)
	link := filepath.Join(root, "link")
	if err := os.Symlink("study", link); err != nil {
		t.Fatal(err)
	}
	got, err := Find([]string{link})
	if err != nil || len(got) != 2 || got[0].Path != link || got[0].Done != 1 || got[1].Study != link {
		t.Errorf("entries %+v, %v", got, err)
	}
}

// A directory whose names cannot be read is listed.
func TestFindUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads every directory")
	}
	closedDir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closedDir, 0o300); err != nil {
		t.Fatal(err)
	}
	got, err := Find([]string{filepath.Dir(closedDir)})
	if err != nil || len(got) != 1 || got[0].Path != closedDir || got[0].Kind != KindBroken {
		t.Errorf("entries %+v, %v", got, err)
	}
}

func TestFindProblems(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "file"), "")
	for path, want := range map[string]string{"none": "no such file", "file": "not a directory"} {
		if _, err := Find([]string{filepath.Join(root, path)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if got, err := Find([]string{root}); err != nil || len(got) != 0 {
		t.Errorf("an empty directory has %v, %v", got, err)
	}
	// A relative directory gives relative paths, as a shell would.
	t.Chdir(root)
	closed(t, create(t, "b", "b"), complete)
	got, err := Find([]string{"."})
	if text, _ := json.Marshal(got); err != nil || len(got) != 1 || got[0].Path != "b" {
		t.Errorf("entries %s, %v", text, err)
	}
}
