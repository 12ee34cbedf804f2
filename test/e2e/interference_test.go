//go:build e2e && measurement

package e2e

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSnapshotInterference compares loopfile, which freezes a volume while it snapshots it, with btrfs, which does
// not: one sentence names the driver that slows writes down more and the component that takes the time. The drivers'
// logs have the same time.
func TestSnapshotInterference(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio", "mkfs.xfs", "mkfs.btrfs")
	b := newBox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // 12 trials
	defer cancel()
	b.finish(ctx, b.command(ctx, b.cnsbench(), "study", "run", filepath.Join(module, "examples", "snapshot-interference.yaml"), "--out", b.in("study"),
		"--storage-dir", b.in("storage"))).wants(t, 0)
	var r struct {
		Sentences   []string
		Comparisons []struct{ Metric, Verdict, Sentence string }
		Whose       []struct {
			Metrics    []string
			A, B       string
			NA         int
			Components []struct {
				Component                   string
				MeanANs, MeanBNs            float64
				DifferenceNs, LowNs, HighNs float64
			}
			Sentence string
		}
	}
	decode(t, b.run("compare", b.in("study"), "--output", "json").wants(t, 0).stdout, &r)
	if len(r.Whose) == 0 || !strings.HasPrefix(r.Whose[0].Metrics[0], "interference(") || r.Whose[0].A != "btrfs" ||
		r.Whose[0].B != "loopfile" || r.Whose[0].NA != 6 {
		t.Fatalf("%+v", r.Whose)
	}
	w := r.Whose[0]
	t.Log(w.Sentence)
	first := w.Components[0]
	const frozen = "CSI driver (file system frozen)"
	if !strings.Contains(w.Sentence, "isturb fio.canaryWrite more in loopfile than in btrfs") ||
		!strings.Contains(w.Sentence, frozen) || first.Component != frozen || first.LowNs <= 0 {
		t.Errorf("%+v\n%s", first, strings.Join(r.Sentences, "\n"))
	}
	if logged := b.meanFreeze("loopfile"); math.Abs(logged-first.MeanBNs) > float64(5*time.Millisecond) {
		t.Errorf("frozen for %v an op, the driver's log has %v", time.Duration(first.MeanBNs), time.Duration(logged))
	}
	if logged := b.meanFreeze("btrfs"); logged != 0 || first.MeanANs != 0 {
		t.Errorf("btrfs: frozen for %v an op, the driver's log has %v", time.Duration(first.MeanANs), time.Duration(logged))
	}
	b.clean()
	if v := r.Comparisons[0].Verdict; v == "inconclusive" || v == "none" { // the machine is too busy for six blocks
		t.Skipf("which disturbs writes more is not decided on this machine: %s", r.Comparisons[0].Sentence)
	}
	if !slices.Contains(r.Sentences, w.Sentence) {
		t.Errorf("the sentence is missing:\n%s", strings.Join(r.Sentences, "\n"))
	}
}

// meanFreeze is the mean over the trials of a backend of the mean length of a freeze, in ns, by the driver's log.
func (b *box) meanFreeze(backend string) float64 {
	b.Helper()
	trials, err := filepath.Glob(b.in("study", "*variant="+backend+"_*"))
	if err != nil || len(trials) == 0 {
		b.Fatalf("no trials of %s: %v", backend, err)
	}
	sum := 0.0
	for _, dir := range trials {
		all, n := 0.0, 0
		for _, f := range freezesOf(b.T, dir, backend) {
			all, n = all+float64(f.Duration), n+1
		}
		sum += all / float64(max(1, n)) / float64(len(trials))
	}
	return sum
}
