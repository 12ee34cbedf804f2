package scorecard

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

var options = Options{Size: "512Mi", N: 6, Disturb: 15 * time.Second, Timeout: time.Minute}

// TestBenchmarks checks that each trial of a class that has everything is a valid Benchmark, with so many operations.
func TestBenchmarks(t *testing.T) {
	c := Class{Name: "null", Driver: "null.csi.cnsbench.dev", SnapshotClass: "null"}
	c.Parameters = plan.ModifiableParameters(c.Driver)
	trials := Trials(options)
	if len(trials) != 13 {
		t.Errorf("%d trials, want 13", len(trials))
	}
	for _, trial := range trials {
		t.Run(trial.Name, func(t *testing.T) {
			text := trial.Benchmark(c, options)
			p, problems := plan.Load(t.Context(), plan.Input{Files: []plan.File{{Name: "x.yaml", Data: []byte(text)}},
				Capabilities: local.New(local.Options{}).Capabilities(), Seed: 1})
			if len(problems) > 0 {
				t.Fatalf("%v\n%s", problems, text)
			}
			if len(p.Warnings) > 0 {
				t.Errorf("warnings: %v", p.Warnings)
			}
			for _, s := range trial.Shows {
				found := false
				for _, a := range p.Actions {
					found = found || a.Name == s.Action
				}
				if !found {
					t.Errorf("capability %s is shown by an action %s that there is not", s.Capability, s.Action)
				}
			}
			if len(p.Budget.Open) > 0 || p.Budget.Ops == 0 || p.Budget.Bytes > 16<<30 {
				t.Errorf("budget: %+v", p.Budget)
			}
		})
	}
	if why := trials[7].NotTried(Class{Name: "x"}); trials[7].Name != "modify" || why == "" {
		t.Errorf("modify without a class is tried: %s", trials[7].Name)
	}
}

// TestNotOffered checks that a capability which a driver does not offer is "no", and any other problem is not.
func TestNotOffered(t *testing.T) {
	for _, tt := range []struct {
		class, trial string
		want         bool
	}{{"hostdir", "block", true}, {"btrfs", "group-snapshot", true}, {"btrfs", "modify", true}, {"none", "create", false}} {
		for _, trial := range Trials(options) {
			if trial.Name != tt.trial {
				continue
			}
			c := Class{Name: tt.class, Parameters: plan.ModifiableParameters(tt.class + ".csi.cnsbench.dev")}
			_, problems := plan.Load(t.Context(), plan.Input{Seed: 1,
				Files:        []plan.File{{Name: "x.yaml", Data: []byte(trial.Benchmark(c, options))}},
				Capabilities: local.New(local.Options{}).Capabilities()})
			if len(problems) == 0 || plan.NotOffered(problems[0]) != tt.want {
				t.Errorf("%s of %s: %v, want not offered: %v", tt.trial, tt.class, problems, tt.want)
			}
		}
	}
}

// TestCapability reads the synthetic run: of 40 snapshots 37 succeeded, and the first failure has a code.
func TestCapability(t *testing.T) {
	b, _ := analysistest.Demo(t)
	for _, tt := range []struct {
		name, action string
		run          Run
		want         Result
		n, ok        int64
		reason       string
	}{
		{"some failed", "snapshots", Run{Dir: b.Dir}, Failed, 38, 37, "1 of 38 operations did not succeed: "},
		{"all succeeded", "fio", Run{Dir: b.Dir}, Yes, 3, 3, ""},
		{"none was started", "clone", Run{Dir: b.Dir}, NotTried, 0, 0, "an earlier one did not succeed"},
		{"declared", "fio", Run{Refused: "has none", Declared: true}, No, 0, 0, "has none"},
		{"by the engine", "fio", Run{Refused: "clone: not supported by x"}, No, 0, 0, "not supported"},
		{"refused", "fio", Run{Refused: "create did not succeed"}, NotTried, 0, 0, "create did not succeed"},
		{"no bundle", "fio", Run{Dir: t.TempDir()}, NotTried, 0, 0, "not run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Shown{"x", tt.action}.capability(tt.run)
			if err != nil {
				t.Fatal(err)
			}
			if got.Result != tt.want || got.N != tt.n || got.OK != tt.ok || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("%+v, want %s, %d of %d and %q", got, tt.want, tt.ok, tt.n, tt.reason)
			}
			if timed := got.MinNs != nil; timed != (tt.ok > 0) {
				t.Errorf("times: %v", timed)
			}
		})
	}
}

// TestDriver checks that a driver that the plan does not name is the one of the run.
func TestDriver(t *testing.T) {
	dir := t.TempDir()
	text := `{"engine": {"drivers": [{"provisioner": "", "name": "a.example"}]}}`
	if err := os.WriteFile(filepath.Join(dir, "environment.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ named, dir, want string }{
		{"", dir, "a.example"}, {"b.example", dir, "b.example"}, {"", t.TempDir(), ""},
	} {
		c := ClassCard{Driver: tt.named}
		if err := c.Add(&Trial{}, "x", Run{Dir: tt.dir}); err != nil || c.Driver != tt.want {
			t.Errorf("%q, %v, want %q", c.Driver, err, tt.want)
		}
	}
}

// TestDisturbance reads the synthetic run, whose snapshots freeze the volume: writes are slower by far.
func TestDisturbance(t *testing.T) {
	b, _ := analysistest.Demo(t)
	d, err := (&Trial{Disturbs: "snapshots"}).disturbance(Run{Dir: b.Dir})
	if err != nil {
		t.Fatal(err)
	}
	if d.Ratio == nil || d.Ratio.Low < 10 || d.During == 0 || d.Quiet == 0 || d.N != 37 || !d.Same || d.Reason != "" {
		t.Errorf("%+v, %+v", d, d.Ratio)
	}
	if d, err = (&Trial{Disturbs: "clone"}).disturbance(Run{Dir: b.Dir}); err != nil || d.Ratio != nil || d.Reason == "" {
		t.Errorf("without operations: %+v, %v", d, err)
	}
}

// hostile is a card with texts that terminals, pages and spreadsheets would obey.
func hostile() *Card {
	ns := func(v int64) *int64 { return &v }
	return &Card{Format: Format, Classes: []ClassCard{{Name: "a|b", Driver: "=HYPERLINK(1)",
		Capabilities: []Capability{
			{Name: "create", Result: Yes, N: 6, OK: 6, MedianNs: ns(2e6), MinNs: ns(1e6), MaxNs: ns(3e6), LowNs: ns(1e6),
				HighNs: ns(3e6)},
			{Name: "groupSnapshot", Result: Failed, Reason: "<script>\x1b[2J|`x`"},
			{Name: "rwx", Result: NotTried, Reason: "@x"}},
		Disturbances: []Disturbance{
			{Operation: "snapshot", N: 5, Same: true, During: 400, Quiet: 900,
				Ratio: &interference.Ratio{Quantile: 0.99, Value: 2.5, Low: 2, High: 3}},
			{Operation: "create", Reason: "too few"}}}}}
}

func TestWrite(t *testing.T) {
	var text, page, cells bytes.Buffer
	c := hostile()
	for _, err := range []error{c.WriteText(&text), c.WriteMarkdown(&page), c.WriteCSV(&cells)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"group snapshot", "not tried", "2 ms    1 ms … 3 ms", "[1 ms, 3 ms]", "the same",
		"p99", "×2.5", "[2, 3]", "400, 900", "a|b, RWX: not tried: @x"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	c.Classes[0].Disturbances = nil
	var quiet bytes.Buffer
	if err := c.WriteText(&quiet); err != nil || strings.Contains(quiet.String(), "How it disturbs") ||
		!strings.Contains(text.String(), "How it disturbs") {
		t.Errorf("%v, a table of disturbances although none were measured:\n%s", err, &quiet)
	}
	if s := page.String(); !strings.Contains(s, `| a\|b |`) || strings.Contains(s, "<script>") || strings.Contains(s, "`") {
		t.Errorf("not escaped:\n%s", s)
	}
	rows, err := csv.NewReader(&cells).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows[1][1] != "'=HYPERLINK(1)" || strings.Contains(rows[2][12], "\x1b") || rows[3][12] != "'@x" ||
		rows[4][7] != "2.5" || rows[1][7] != "2000000" {
		t.Errorf("%q", rows)
	}
}
