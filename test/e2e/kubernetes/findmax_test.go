//go:build e2e

package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindMax searches the rate of volumes that one worker creates on the cluster: every step has its own bundle, and
// leaves nothing.
func TestFindMax(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	file := filepath.Join(t.TempDir(), "benchmark.yaml")
	text := strings.Replace(volumes("null", ""), "{name: r, constantRateSpec: {interval: 1s}}",
		"{name: r, maxInFlight: 1, onSaturation: queue, constantRateSpec: {perSecond: 16}}", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "found")
	var found struct {
		FindMax struct {
			Verdict, Bound            string
			PerSecond, AbovePerSecond *float64
			Steps                     []struct{ PerSecond float64 }
		}
	}
	p.decode(&found, "run", file, "--engine", "kubernetes", "--runner", "local", "--namespace", p.name, "--image",
		p.image, "--find-max", "p50(vol) < 2s", "--find-resolution", "1", "--find-least", "0.5", "--find-most", "256",
		"--window", "5s", "--concurrent", "--out", dir, "--output", "json")
	f := &found.FindMax
	if f.Verdict != "found" || f.Bound == "" || f.PerSecond == nil || f.AbovePerSecond == nil ||
		*f.AbovePerSecond < *f.PerSecond || *f.AbovePerSecond > 3*(*f.PerSecond) {
		t.Errorf("%+v", *f)
	}
	bundles, err := filepath.Glob(filepath.Join(dir, "*", "manifest.json"))
	if err != nil || len(bundles) != len(f.Steps) || len(f.Steps) < 6 {
		t.Errorf("%d bundles of %d steps, %v", len(bundles), len(f.Steps), err)
	}
	p.nothingLeft()
}
