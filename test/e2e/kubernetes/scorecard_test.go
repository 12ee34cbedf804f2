//go:build e2e

package kubernetes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/scorecard"
)

// TestScorecard tries classes of the test bed whose capabilities are known: null has everything but raw block volumes;
// hostdir-wffc has no group snapshots either, cannot modify volumes, and has no volume that no pod uses.
func TestScorecard(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	p.kubectl("label", "namespace", p.name, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.binary, "scorecard", "--engine", "kubernetes", "--runner", "local",
		"--namespace", p.name, "--image", p.image, "--classes", "null,hostdir-wffc", "--size", "64Mi",
		"--timeout", "1m", "--n", "2", "--disturb-for", "0", "--concurrent", "--out", filepath.Join(t.TempDir(), "card"), "--output", "json")
	cmd.Stdout, cmd.Stderr = &out, t.Output()
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var card scorecard.Card
	if err := json.Unmarshal(out.Bytes(), &card); err != nil || len(card.Classes) != 2 {
		t.Fatalf("%v: %s", err, &out)
	}
	want := map[string]map[string]scorecard.Result{
		"null": {"block": scorecard.No},
		"hostdir-wffc": {"block": scorecard.No, "expandDetached": scorecard.NotTried, "modify": scorecard.No,
			"groupSnapshot": scorecard.No},
	}
	for _, c := range card.Classes {
		if len(c.Capabilities) != 11 {
			t.Errorf("%s: %d capabilities, want 11", c.Name, len(c.Capabilities))
		}
		for _, x := range c.Capabilities {
			if want := cmp.Or(want[c.Name][x.Name], scorecard.Yes); x.Result != want || want != scorecard.Yes && x.Reason == "" {
				t.Errorf("%s, %s: %s, want %s: %s", c.Name, x.Name, x.Result, want, x.Reason)
			}
			if x.Result == scorecard.Yes && (x.OK != 2 || x.MinNs == nil) {
				t.Errorf("%s, %s: %+v", c.Name, x.Name, x)
			}
		}
	}
	p.nothingLeft()
}
