//go:build e2e

package e2e

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type cardJSON struct {
	Format  int
	Classes []struct {
		Name, Driver string
		Capabilities []struct {
			Name, Result, Reason, Trial string
			N, OK                       int64
			MedianNs, LowNs, HighNs     *int64
		}
		Disturbances []struct {
			Operation     string
			N             int64
			During, Quiet int64
			Ratio         *struct{ Value, Low, High float64 }
			Reason        string
		}
	}
}

// offered has the capabilities of the built-in drivers (docs/design/csi-drivers.md), in the order of the card: create,
// delete, block, RWX, snapshot, restore, clone, expand, expand detached, modify, group snapshot. A dot is not judged:
// ext4 grows while mounted only with CAP_SYS_RESOURCE.
var offered = map[string]string{
	"null":         "yyyyyyyyyyy",
	"hostdir":      "yynyyyyyynn",
	"loopfile":     "yyynyyy.yyy",
	"loopfile-xfs": "yyynyyyyyyy",
	"btrfs":        "yynyyyyyynn",
}

// TestScorecard checks the capabilities of the built-in drivers against what is known of them. It is interrupted and
// continued on the way; finished runs are not repeated.
func TestScorecard(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	classes := "null,hostdir"
	args := []string{"scorecard", "--classes", classes, "--disturb-for", "0", "--size", "16Mi", "--out", b.in("card"),
		"--storage-dir", b.in("storage")}
	r := b.run(append(args, "--dry-run")...).wants(t, 0)
	if _, err := os.Stat(b.in("card")); err == nil || !strings.Contains(r.stdout, "nothing was created") {
		t.Errorf("--dry-run: %v", r)
	}
	l := b.start(b.cnsbench(), args...)
	l.reaches("trial 3 of 18")
	l.signal(os.Interrupt)
	l.wait().wants(t, 130)

	r = b.run(append(args, "--output", "json")...).wants(t, 0)
	if strings.Contains(r.stderr, "trial 1 of 18") {
		t.Errorf("a finished run was repeated\n%v", r)
	}
	b.capabilities(r, 2)
	bundles, err := filepath.Glob(b.in("card", "*", "manifest.json"))
	if err != nil || len(bundles) != 18-3 { // hostdir has no block, no modify, no groups
		t.Errorf("%d bundles, %v", len(bundles), err)
	}
	page := b.run(append(args, "--output", "markdown")...).wants(t, 0).stdout
	if !strings.Contains(page, "| hostdir | hostdir.csi.cnsbench.dev | yes | yes | no |") {
		t.Error(page)
	}
	rows, err := csv.NewReader(strings.NewReader(b.run(append(args, "--output", "csv")...).wants(t, 0).stdout)).ReadAll()
	if err != nil || len(rows) != 1+2*11 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if text := b.run(args...).wants(t, 0).stdout; !strings.Contains(text, "hostdir has no raw block volumes") {
		t.Error(text)
	}
	b.clean()
}

// capabilities compares a card with what is offered.
func (b *box) capabilities(r result, classes int) cardJSON {
	b.Helper()
	var card cardJSON
	decode(b, r.stdout, &card)
	if card.Format != 1 || len(card.Classes) != classes {
		b.Fatalf("%+v", card)
	}
	for _, c := range card.Classes {
		want := offered[c.Name]
		if len(c.Capabilities) != len(want) {
			b.Fatalf("%s: %d capabilities, want %d", c.Name, len(c.Capabilities), len(want))
		}
		for i, x := range c.Capabilities {
			if want[i] != '.' && (x.Result[0] != want[i] || x.Result == "notTried") {
				b.Errorf("%s, %s: %s, want %c: %s", c.Name, x.Name, x.Result, want[i], x.Reason)
			}
			if x.Result == "yes" && (x.OK != 6 || x.MedianNs == nil || x.LowNs == nil || *x.LowNs > *x.MedianNs ||
				*x.HighNs < *x.MedianNs) {
				b.Errorf("%s, %s: %+v", c.Name, x.Name, x)
			}
			if x.Result != "yes" && x.Reason == "" {
				b.Errorf("%s, %s: %s without a reason", c.Name, x.Name, x.Result)
			}
		}
	}
	return card
}

// TestScorecardOfFileSystems does the same on real file systems, with the effect on writes. A snapshot of loopfile
// freezes the volume, here for a known time.
func TestScorecardOfFileSystems(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio", "mkfs.ext4", "mkfs.btrfs")
	t.Parallel()
	b := newBox(t)
	file := b.write("slow.yaml", `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: loopfile}
provisioner: loopfile.csi.cnsbench.dev
parameters: {driver.cnsbench.dev/inject: "{rpcs: {CreateSnapshot: {delay: 100ms}}}"}
`)
	args := []string{"scorecard", file, "--classes", "loopfile,btrfs", "--disturb-for", "9s", "--size", "128Mi", "--out",
		b.in("card"), "--storage-dir", b.in("storage"), "--output", "json"}
	card := b.capabilities(b.run(args...).wants(t, 0), 2)
	for _, c := range card.Classes {
		for _, d := range c.Disturbances {
			if d.Ratio == nil && d.Reason == "" || d.Ratio != nil && !(d.Ratio.Low <= d.Ratio.High && d.During > 0 &&
				d.Quiet > 0 && d.N > 0) {
				t.Errorf("%s, %s: %+v", c.Name, d.Operation, d)
			}
			if c.Name == "loopfile" && d.Operation == "snapshot" && d.Ratio == nil {
				t.Errorf("no ratio beside snapshots of 100 ms: %+v", d)
			}
		}
		if len(c.Disturbances) != 4 {
			t.Errorf("%s: %d disturbances", c.Name, len(c.Disturbances))
		}
	}
	b.clean(b.in("storage", "loopfile"), b.in("storage", "btrfs"))
}

// TestScorecardRefuses checks the messages on flags that a scorecard cannot use.
func TestScorecardRefuses(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--classes", "nul"}, "--classes nul: StorageClass \"nul\" not found"},
		{[]string{"--classes", "null,null"}, "there twice"},
		{[]string{"--size", "-1"}, "invalid --size"},
		{[]string{"--size", "16Mi"}, "or --disturb-for 0"},
		{[]string{"--n", "0"}, "invalid --n 0"},
		{[]string{"--output", "html"}, `invalid --output "html"`},
		{[]string{"--disturb-for", "1s"}, "invalid --disturb-for 1s"},
		{[]string{"--classes", "null", "--attributes-class", "x=y"}, "the StorageClass is not tried"},
	} {
		r := b.run(append([]string{"scorecard", "--out", b.in("x"), "--storage-dir", b.in("storage")}, tt.args...)...)
		if r.wants(t, 1); !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%v: want %q", r, tt.want)
		}
	}
	if _, err := os.Stat(b.in("x")); err == nil {
		t.Error("the directory was made")
	}
	b.clean()
}
