//go:build e2e

package kubernetes

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/scorecard"
)

// TestScorecard tries classes of the test bed whose capabilities are known: null has everything; hostdir-wffc has no
// raw block volumes and no group snapshots, and a volume of it that no pod uses cannot be made. No
// VolumeAttributesClass is given.
func TestScorecard(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	p.kubectl("label", "namespace", p.name, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.binary, "scorecard", "--engine", "kubernetes", "--runner", "local",
		"--namespace", p.name, "--image", p.image, "--classes", "null,hostdir-wffc", "--size", "64Mi", "--timeout", "20s",
		"--disturb-for", "0", "--concurrent", "--out", filepath.Join(t.TempDir(), "card"), "--output", "json")
	cmd.Stdout, cmd.Stderr = &out, t.Output()
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var card scorecard.Card
	if err := json.Unmarshal(out.Bytes(), &card); err != nil || len(card.Classes) != 2 {
		t.Fatalf("%v: %s", err, &out)
	}
	cannot := map[string]map[string][]scorecard.Result{
		// On a cluster a volume without a pod keeps the condition FileSystemResizePending: the claim is not changed.
		"null": {"block": {scorecard.Yes, scorecard.Failed}, "expandDetached": {scorecard.Yes, scorecard.Failed},
			"modify": {scorecard.NotTried, scorecard.No, scorecard.Failed}},
		"hostdir-wffc": {"block": {scorecard.No, scorecard.Failed}, "expandDetached": {scorecard.NotTried},
			"modify": {scorecard.NotTried, scorecard.No}, "groupSnapshot": {scorecard.No, scorecard.Failed, scorecard.NotTried}},
	}
	for _, c := range card.Classes {
		if len(c.Capabilities) != 11 {
			t.Errorf("%s: %d capabilities, want 11", c.Name, len(c.Capabilities))
		}
		for _, x := range c.Capabilities {
			want, ok := cannot[c.Name][x.Name]
			if !ok {
				want = []scorecard.Result{scorecard.Yes}
			}
			found := false
			for _, r := range want {
				found = found || x.Result == r
			}
			if !found {
				t.Errorf("%s, %s: %s, want %v: %s", c.Name, x.Name, x.Result, want, x.Reason)
			}
			if x.Result == scorecard.Yes && (x.OK != 6 || x.MedianNs == nil || x.LowNs == nil) {
				t.Errorf("%s, %s: %+v", c.Name, x.Name, x)
			}
		}
	}
	p.nothingLeft()
}
