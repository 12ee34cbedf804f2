//go:build e2e

package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// occasionStudy has 3 providers, 2 workloads and 4 blocks.
const occasionStudy = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: occasions}
spec:
  seed: 11
  occasions: 2
  blocks: 4
  factors:
    spec.actions.vol.createObjSpec.volume.storageClass: [a, b, c]
    spec.actions.vol.createObjSpec.count: [1, 3]
    spec.runtime: {choice: [20ms, 30ms, 40ms]}
  metrics:
    - {response: p50(vol), marginPercent: 20}
  benchmark:
    actions:
      - {name: vol, createObjSpec: {volume: {size: 64Mi}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}, provisioner: null.csi.cnsbench.dev}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: b}, provisioner: null.csi.cnsbench.dev}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: c}, provisioner: null.csi.cnsbench.dev}
`

// trialBundles are the directories with a closed bundle, by name.
func (b *box) trialBundles(study string) map[string]string {
	b.Helper()
	manifests, err := filepath.Glob(filepath.Join(study, "*", "manifest.json"))
	if err != nil {
		b.Fatal(err)
	}
	sums := map[string]string{}
	for _, name := range manifests {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		sums[filepath.Base(filepath.Dir(name))] = string(text)
	}
	return sums
}

// killWithin is the longest life in ms of a process of TestStudyKilledOften: about two trials, so that ten lives end
// before the 24 trials of an occasion do.
const killWithin = 250

// TestStudyKilledOften kills a study of two occasions at 20 random moments. It checks that the plan is that of a study
// which ran without a kill, that each trial is there once, and that no finished trial is repeated.
func TestStudyKilledOften(t *testing.T) {
	b := newBox(t)
	file := b.write("study.yaml", occasionStudy)
	storage := []string{"--storage-dir", b.in("storage")}
	first := append([]string{"study", "run", file, "--out", b.in("study")}, storage...)
	second := []string{"study", "add-occasion", b.in("study"), "--up-to", "2"}
	done := map[string]string{}
	kills := 0
	for _, args := range [][]string{first, second} {
		for i := 0; ; i++ {
			l := b.start(b.cnsbench(), args...)
			if i < 10 {
				select {
				case <-l.exited:
				case <-time.After(time.Duration(rand.IntN(killWithin)) * time.Millisecond):
					l.kill()
					kills++
				}
			} else {
				l.wait().wants(t, 0)
			}
			now := b.trialBundles(b.in("study"))
			for name, manifest := range done {
				if now[name] != manifest {
					t.Errorf("trial %s was finished and has been repeated or lost", name)
				}
			}
			done = now
			if i >= 10 {
				break
			}
		}
	}
	t.Logf("%d kills", kills)
	if kills < 15 {
		t.Errorf("%d kills: killWithin is too long for trials as short as these", kills)
	}
	killed := b.order(b.in("study"))
	if len(killed) != 48 || len(done) != 48 {
		t.Errorf("%d trials are planned and %d are there, want 48", len(killed), len(done))
	}

	// The same without kills.
	b.run(append([]string{"study", "run", file, "--out", b.in("whole")}, storage...)...).wants(t, 0)
	b.run("study", "add-occasion", b.in("whole")).wants(t, 0)
	if diff := cmp.Diff(b.order(b.in("whole")), killed); diff != "" {
		t.Errorf("another plan: %s", diff)
	}
	var status struct {
		Done, Of  int
		Occasions []struct{ Done, Of int }
		Metrics   []struct{ Cells []struct{ N int } }
	}
	decode(t, b.run("show", "--status", b.in("study"), "--output", "json").wants(t, 0).stdout, &status)
	if status.Done != 48 || status.Of != 48 || len(status.Occasions) != 2 || len(status.Metrics[0].Cells) != 6 {
		t.Errorf("%+v", status)
	}
	for _, c := range status.Metrics[0].Cells {
		if c.N != 8 {
			t.Errorf("a cell has %d values, want 8", c.N)
		}
	}
	b.clean()
}

// TestStudyOccasions checks that add-occasion takes files and flags of the study over, refuses what has changed, skips
// excluded dates and the planned end, and that status and compare read the result.
func TestStudyOccasions(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	text := strings.Replace(occasionStudy, "blocks: 4", "blocks: 1", 1)
	file := b.write("study.yaml", text)
	dir := b.in("study")
	b.run("study", "add-occasion", dir).wants(t, 1)
	b.run("study", "run", file, "--out", dir, "--storage-dir", b.in("storage"), "--aa",
		"storageClass=a", "--time-zone", "Europe/Berlin").wants(t, 0)
	add := func(code int, want string, more ...string) {
		t.Helper()
		r := b.run(append([]string{"study", "add-occasion", dir}, more...)...).wants(t, code)
		if !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("does not say %q\n%v", want, r)
		}
	}
	dry := b.run("study", "add-occasion", dir, "--dry-run").wants(t, 0)
	if n := strings.Count(dry.stdout, "o2_"); n != 8 {
		t.Errorf("%d trials are listed, want 8\n%v", n, dry)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var excluded []string
	for _, day := range []int{0, 1} { // also after midnight
		excluded = append(excluded, "--exclude-date", time.Now().In(zone).AddDate(0, 0, day).Format(time.DateOnly))
	}
	add(0, "is excluded", excluded...)
	add(1, "want YYYY-MM-DD", "--exclude-date", "24.12.")
	add(0, "1 occasion, as wanted", "--up-to", "1")
	if err := os.Mkdir(b.in("elsewhere"), 0o755); err != nil {
		t.Fatal(err)
	}
	add(1, "started with", "--storage-dir", b.in("elsewhere"))
	b.write("study.yaml", text+"# changed\n")
	add(1, "study.yaml has changed")
	b.write("study.yaml", text)
	add(0, "occasion 2", "--blocks", "2", "--up-to", "2")
	names := b.order(dir)
	if len(names) != 8+16 || len(b.trialBundles(dir)) != 24 || !strings.HasPrefix(names[8], "o2_01_") {
		t.Errorf("trials %v", names)
	}
	add(0, "2 occasions, as wanted", "--up-to", "2")
	status := b.run("show", "--status", dir).wants(t, 0)
	for _, want := range []string{"24 of 24 trials done", "2 of 2 planned occasions begun", "coverage, in occasions",
		"p50(vol), lower is better; wanted: ± 20 %", "a (A/A)",
		"warning: occasions 1 and 2 are of one day"} {
		if !strings.Contains(status.stdout, want) {
			t.Errorf("status does not say %q\n%v", want, status)
		}
	}
	var table struct {
		Rows []struct {
			AAOf   *int
			Values []struct {
				Trials []struct {
					Occasion, Block, Repetition int
					Draws                       []struct{ Value string }
				}
			}
		}
	}
	decode(t, b.run("show", dir, "--output", "json").wants(t, 0).stdout, &table)
	for _, row := range table.Rows {
		var got []int
		for _, v := range row.Values[0].Trials {
			got = append(got, 100*v.Occasion+10*v.Block+v.Repetition)
			if len(v.Draws) != 1 {
				t.Errorf("no draw: %+v", v)
			}
		}
		if !slices.Equal(got, []int{111, 212, 223}) {
			t.Errorf("occasion, block and repetition of the trials: %v", got)
		}
	}
	if len(table.Rows) != 8 || table.Rows[6].AAOf == nil || *table.Rows[6].AAOf != 0 {
		t.Errorf("%+v", table.Rows)
	}
	b.clean()
}

// TestStudySchedule checks the objects that schedule writes, and that their command does what it says.
func TestStudySchedule(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("study.yaml", strings.Replace(occasionStudy, "blocks: 4", "blocks: 1", 1))
	r := b.run("study", "schedule", file, "--claim", "studies", "-n", "bench").wants(t, 0)
	for _, want := range []string{"kind: CronJob", "schedule: 30 10 * * 2", "claimName: studies", "kind: ConfigMap",
		"- /etc/cnsbench/study.yaml", "--up-to=2"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q\n%v", want, r)
		}
	}
	b.run("study", "schedule", file, "--claim", "studies", "--at", "Mon 9").wants(t, 1)
	for range 3 { // the third has nothing to do
		b.run("study", "add-occasion", b.in("study"), file, "--storage-dir", b.in("storage"), "--up-to=2",
			"--exclude-date=2026-12-24", "--time-zone=Europe/Berlin").wants(t, 0)
	}
	if n := len(b.trialBundles(b.in("study"))); n != 12 {
		t.Errorf("%d trials, want those of two occasions", n)
	}
	r = b.run("study", "schedule", b.in("study"), "--claim", "studies").wants(t, 0)
	if !strings.Contains(r.stdout, "- /study/study\n") {
		t.Errorf("of a directory:\n%v", r)
	}
	b.clean()
}
