package cli

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/cost"
)

// pricesFile has prices for everything that the kept runs used.
func pricesFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const keptPrices = `
currency: EUR
source: an example
nodes: {"*": {perHour: 0.36}}
storageClasses: {"*": {perGBMonth: 0.1, snapshotPerGBMonth: 0.05, iops: 10, perIOPSMonth: 0.001}}
`

// TestShowCost: the cost of a kept run is its time in hours times the price, as computed by hand, and its parts add up.
func TestShowCost(t *testing.T) {
	t.Parallel()
	file := pricesFile(t, keptPrices)
	code, out, errs := cnsbench(t, "", "show", "--prices", file, keptRuns+"/bundle", "--output", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var s struct{ Cost *cost.Result }
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	node, sum := 0.0, 0.0
	for _, c := range s.Cost.Charges {
		sum += *c.Cost
		if c.Resource == "node" {
			node = *c.Cost
		}
	}
	if want := 4247860698 / 3.6e12 * 0.36; math.Abs(node/want-1) > 1e-9 { // endedAt of the run
		t.Errorf("the node costs %v, want %v", node, want)
	}
	if math.Abs(sum / *s.Cost.Total - 1) > 1e-12 || s.Cost.Currency != "EUR" || len(s.Cost.PricesSHA256) != 64 {
		t.Errorf("%+v", s.Cost)
	}
	_, text, _ := cnsbench(t, "", "show", "--prices", file, keptRuns+"/bundle")
	for _, want := range []string{"Cost (EUR)", "volume hostdir", "million control operations", "prices: an example"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if _, text, _ = cnsbench(t, "", "show", keptRuns+"/bundle"); strings.Contains(text, "Cost") {
		t.Error("without prices there is a cost")
	}
}

// TestStudyCosts: compare has the costs of the trials of a study, with the given prices or the recorded ones.
func TestStudyCosts(t *testing.T) {
	t.Parallel()
	file := pricesFile(t, "currency: EUR\nnodes: {'*': {perHour: 1}}")
	recorded := filepath.Join(t.TempDir(), "study")
	if err := os.CopyFS(recorded, os.DirFS(keptRuns+"/study")); err != nil {
		t.Fatal(err)
	}
	design, err := os.ReadFile(recorded + "/study.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(design), "{", `{"prices": {"currency": "USD", "nodes": {"*": {"perHour": 1}}},`, 1)
	if err := os.WriteFile(recorded+"/study.json", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args     []string
		currency string
	}{{[]string{recorded}, "USD"}, {[]string{recorded, "--prices", file}, "EUR"}} {
		code, out, errs := cnsbench(t, "", append([]string{"compare", "--output", "json"}, tt.args...)...)
		var r compare.Result
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
			t.Fatal(code, errs, err)
		}
		units := map[string]string{}
		for _, c := range r.Comparisons {
			units[c.Metric] = c.Unit + " " + c.Direction
		}
		if units["cost per trial"] != tt.currency+" lower" || units["cost per million control operations"] != tt.currency+
			" lower" || !strings.Contains(strings.Join(r.Notes, "|"), "costs are without volume null") {
			t.Errorf("%v: %v, %q", tt.args, units, r.Notes)
		}
	}
	for _, output := range []string{"text", "markdown", "csv"} {
		_, out, _ := cnsbench(t, "", "compare", recorded, "--output", output)
		if !strings.Contains(out, "cost per trial") {
			t.Errorf("%s: no cost in %s", output, out)
		}
	}
	// The currencies of a baseline and of the study differ.
	code, _, errs := cnsbench(t, "", "compare", recorded, "--baseline", recordedIn(t, recorded, "USD", "EUR"))
	if code == 0 || !strings.Contains(errs, `cost per trial has the unit "EUR" in baseline and "USD" in now`) {
		t.Errorf("%d %s", code, errs)
	}
}

// recordedIn copies a study with prices in another currency.
func recordedIn(t *testing.T, dir, from, to string) string {
	t.Helper()
	other := filepath.Join(t.TempDir(), "study")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	otherRuns(t, other)
	design, err := os.ReadFile(other + "/study.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(design), `"`+from+`"`, `"`+to+`"`, 1)
	if err := os.WriteFile(other+"/study.json", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return other
}

// TestWrongPrices: each wrong use of --prices ends with what to do.
func TestWrongPrices(t *testing.T) {
	t.Parallel()
	bad, good := pricesFile(t, "currency: EUR\nnodes: {a: {perHour: -1}}"), pricesFile(t, keptPrices)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"show", "--prices", bad, keptRuns + "/bundle"}, "invalid nodes.a.perHour -1"},
		{[]string{"show", "--prices", "absent.yaml", keptRuns + "/bundle"}, "absent.yaml"},
		{[]string{"show", "--prices", bad, keptRuns + "/study"}, "cnsbench compare has what its trials cost"},
		{[]string{"compare", "--prices", bad, keptRuns + "/study"}, "invalid nodes.a.perHour -1"},
		{[]string{"compare", "--prices", good, importAzure(t), "--factor", "provider"},
			"it has no record of the resources used"},
	} {
		if code, _, errs := cnsbench(t, "", tt.args...); code == 0 || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: %d %s, want %q", tt.args, code, errs, tt.want)
		}
	}
}

// TestBoundedCosts: a cost that is an upper bound in some trials has no verdict, the others have theirs.
func TestBoundedCosts(t *testing.T) {
	t.Parallel()
	c := costed{bounds: []string{"at most: the I/Os of dd are unknown"}}.with(costed{}, true)
	want := map[string]string{"cost per million I/Os or requests": "upper bounds: at most: the I/Os of dd are unknown"}
	if got := c.weak(); !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestIncompletePrices: where a trial used a resource that has no price, no cost has a verdict; nor is a difference
// between two lists of prices left out.
func TestIncompletePrices(t *testing.T) {
	t.Parallel()
	class := func(text string) string {
		return pricesFile(t, "currency: EUR\nnodes: {'*': {perHour: 1}}\nstorageClasses: {'null': {perGBMonth: 1"+text+"}}")
	}
	all, part := class(", iops: 0, perIOPSMonth: 0, mbps: 0, perMBpsMonth: 0"), class("")
	study := filepath.Join(t.TempDir(), "study")
	if err := os.CopyFS(study, os.DirFS(keptRuns+"/study")); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(study, "2_parallelism=2_r1", "run.json")
	text, err := os.ReadFile(run)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(text), `"storageClass": "null"`, `"storageClass": "other"`)
	if other == string(text) {
		t.Fatal("no class in run.json")
	}
	if err := os.WriteFile(run, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, file, missing string }{
		{keptRuns + "/study", all, ""},
		{keptRuns + "/study", part, "provisioned IOPS of null; provisioned throughput of null"},
		{study, all, "volume other"},
	} {
		dir, want := tt.dir, tt.missing != ""
		reason := "resources that were used have no price (" + tt.missing + "): give prices of all, 0 for what is free"
		code, out, errs := cnsbench(t, "", "compare", dir, "--prices", tt.file, "--output", "json")
		var r compare.Result
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
			t.Fatal(code, errs, err)
		}
		if got := slices.Contains(r.Notes, "costs cannot be compared: "+reason); got != want {
			t.Errorf("%s: %q", dir, r.Notes)
		}
		for _, c := range r.Comparisons {
			if strings.HasPrefix(c.Metric, "cost per") && (c.Reason == reason) != want {
				t.Errorf("%s: %s: %s, %q", dir, c.Metric, c.Verdict, c.Reason)
			}
		}
	}
	priced := func(perHour string) string {
		study := filepath.Join(t.TempDir(), "study")
		if err := os.CopyFS(study, os.DirFS(keptRuns+"/study")); err != nil {
			t.Fatal(err)
		}
		otherRuns(t, study)
		design, err := os.ReadFile(study + "/study.json")
		if err != nil {
			t.Fatal(err)
		}
		prices := `{"prices": {"currency": "EUR", "nodes": {"*": {"perHour": ` + perHour + `}}},`
		text := strings.Replace(string(design), "{", prices, 1)
		if err := os.WriteFile(study+"/study.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return study
	}
	code, out, errs := cnsbench(t, "", "compare", priced("1"), "--baseline", priced("2"))
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "different lists of prices") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}
