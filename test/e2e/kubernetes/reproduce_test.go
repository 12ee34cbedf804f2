//go:build e2e

package kubernetes

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// reproduced has some members of reproduction.json.
type reproduced struct {
	Facts struct {
		Compared    int
		Differences []struct{ Fact, Group, Then, Now string }
	}
	Comparison struct{ Cells []struct{ Level string } }
}

// TestReproduce runs the bundles of runs on the cluster again, by the command or a runner's pod as at first: in the
// namespace of the bundle, and without a fact that differs but for the classes that other
// tests have applied.
func TestReproduce(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	for _, runner := range []string{"local", "pod"} {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			p := bed.project(t, noRights)
			flags := map[string][]string{"pod": {"--create-rbac"}}[runner]
			first := p.command(runner, strings.Replace(volumes("null", ""), "runtime: 15s", "runtime: 5s", 1), flags...)
			p.ends(first, 0)
			var r reproduced
			p.decode(&r, append([]string{"reproduce", first.bundle, "--image", p.image, "--out",
				filepath.Join(t.TempDir(), "again"), "--output", "json"}, flags...)...)
			for _, d := range r.Facts.Differences {
				of := strings.HasPrefix(d.Fact, "engine.storageClasses.") || strings.HasPrefix(d.Fact, "engine.volumeSnapshotClasses.")
				if d.Group != "place" || !of {
					t.Errorf("%s: %s, now %s", d.Fact, d.Then, d.Now)
				}
			}
			if r.Facts.Compared < 50 || len(r.Comparison.Cells) < 2 {
				t.Errorf("%+v", r)
			}
			p.nothingLeft()
		})
	}
}

// decode reads what a command prints as JSON.
func (p *project) decode(v any, args ...string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.binary, args...)
	cmd.Stderr = p.t.Output()
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("cnsbench %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	if err := json.Unmarshal(out, v); err != nil {
		p.t.Fatalf("cnsbench %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
