package compare_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

const data = "../../../examples/imported"

// tableOf imports a file of the examples.
func tableOf(t *testing.T, name string, c imported.Columns) *observation.Table {
	t.Helper()
	f, err := os.Open(filepath.Join(data, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "study")
	if _, err := imported.CSV(dir, name, f, imported.Format{Columns: c}); err != nil {
		t.Fatal(err)
	}
	_, table, err := imported.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func azure(t *testing.T, o compare.Options) *compare.Result {
	t.Helper()
	table := tableOf(t, "dbench-azure-2023.csv", imported.Columns{Factors: []string{"provider"}, Block: "occasion",
		Repetition: "repetition", Metric: "metric", Unit: "unit", Values: imported.Names{"value"}})
	o.Factor = "provider"
	r, err := compare.Run(table, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAzureMeans compares the means with table 6.1 of the study that the values are from.
func TestAzureMeans(t *testing.T) {
	t.Parallel()
	providers := []string{"Disk Storage", "Portworx", "OpenEBS", "Rook-Ceph"}
	published := map[string][]float64{
		"Random read bandwidth":  {186.3, 668.25, 17.88, 256.55},
		"Random write bandwidth": {122.7, 57.1, 38.25, 86.425},
		"Random read IOPS":       {3991.75, 35745, 2389.9, 3364.35},
		"Random write IOPS":      {975.25, 6029.05, 1537.55, 2782.8},
		"Read latency":           {1007.52, 257.18, 2528.44, 3121.93},
		"Write latency":          {4157.31, 756.25, 3024.92, 7076.00},
		"Sequential read":        {194.5, 805.1, 9.99, 261.85},
		"Sequential write":       {192.65, 59.55, 47.05, 86.67},
		"Mixed read IOPS":        {1703, 18800, 1652.1, 2783.5},
		"Mixed write IOPS":       {569.25, 6235.9, 551.3, 928.95},
	}
	seen := 0
	for _, c := range azure(t, compare.Options{}).Cells {
		want := published[c.Metric][slices.Index(providers, c.Level)]
		// The table has two digits, or three where a mean of 20 values needs them.
		if got := math.Round(*c.Mean*100) / 100; got != want && math.Abs(*c.Mean-want) > 1e-9 {
			t.Errorf("%s, %s: mean %v, published %v", c.Metric, c.Level, *c.Mean, want)
		}
		if c.N != 20 || c.Occasions != 4 {
			t.Errorf("%s, %s: n = %d of %d occasions", c.Metric, c.Level, c.N, c.Occasions)
		}
		seen++
	}
	if seen != 40 {
		t.Errorf("%d cells", seen)
	}
}

// TestAzureVariation has the coefficients of variation of the study, which divides by the median.
func TestAzureVariation(t *testing.T) {
	t.Parallel()
	r := azure(t, compare.Options{})
	for level, want := range map[string][2]float64{"Portworx": {20.08, 23.03}, "OpenEBS": {10.52, 10.95}} {
		c := cellOf(t, r, "Random read IOPS", level)
		got := [2]float64{math.Round(*c.CVOfMedian*1e4) / 100, math.Round(*c.CV*1e4) / 100}
		if got != want || c.CVDenominator != "mean" {
			t.Errorf("%s: CV by the median and by the %s %v, want %v", level, c.CVDenominator, got, want)
		}
	}
}

func cellOf(t *testing.T, r *compare.Result, metric, level string) *compare.Cell {
	t.Helper()
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Metric == metric && c.Level == level {
			return c
		}
	}
	t.Fatalf("no cell of %s, %s", metric, level)
	return nil
}

// TestAzureVerdicts: at the level of occasions four are too few for four providers; the repetitions, which are not
// independent of their occasion, say something about these occasions only.
func TestAzureVerdicts(t *testing.T) {
	t.Parallel()
	r := azure(t, compare.Options{})
	if len(r.Comparisons) != 60 {
		t.Fatalf("%d comparisons", len(r.Comparisons))
	}
	for _, c := range r.Comparisons {
		if c.UnitOfAnalysis != "occasion" || c.NA != 4 || c.NB != 4 || c.Family != 6 || c.Paired {
			t.Errorf("%s: %+v", c.Sentence, c.Answer)
		}
		if c.Verdict == verdict.Inconclusive && (c.Needs == nil || c.Needs.N < 5 || c.Needs.Of != "occasion") {
			t.Errorf("%s: needs %+v", c.Sentence, c.Needs)
		}
		if c.Verdict != verdict.Inconclusive && c.Verdict != verdict.Equivalent {
			t.Errorf("%s: verdict %s", c.Sentence, c.Verdict)
		}
		if w := c.Within; w == nil || w.NA != 20 || w.NB != 20 || w.Scope != "for these 4 occasions" {
			t.Errorf("%s: within %+v", c.Sentence, w)
		}
	}
	c := comparisonOf(t, r, "Random read IOPS", "Disk Storage", "Portworx")
	if c.Within.Verdict != verdict.Better || *c.Ratio < 6 || *c.Ratio > 11 || *c.P != 2.0/70 {
		t.Errorf("%s: p = %v", c.Sentence, *c.P)
	}
	c = comparisonOf(t, r, "Read latency", "Disk Storage", "Rook-Ceph")
	if c.Direction != "lower" || c.Within.Verdict != verdict.Worse {
		t.Errorf("%s", c.Sentence)
	}
}

func comparisonOf(t *testing.T, r *compare.Result, metric, a, b string) *compare.Comparison {
	t.Helper()
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; c.Metric == metric && c.A == a && c.B == b {
			return c
		}
	}
	t.Fatalf("no comparison of %s and %s", a, b)
	return nil
}

// TestAzureFirstRuns: the study names Portworx's random reads and denies the effect for the other providers. OpenEBS
// has it in seven metrics.
func TestAzureFirstRuns(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for _, c := range azure(t, compare.Options{}).Cells {
		for _, w := range c.Warnings {
			if w.Name == "firstRun" {
				found[c.Level] = append(found[c.Level], c.Metric)
			}
		}
	}
	for level, want := range map[string][]string{
		"Portworx": {"Random read bandwidth", "Random read IOPS"},
		"OpenEBS": {"Mixed read IOPS", "Mixed write IOPS", "Random read bandwidth", "Random read IOPS", "Random write IOPS",
			"Read latency", "Write latency"},
	} {
		slices.Sort(found[level])
		slices.Sort(want)
		if !slices.Equal(found[level], want) {
			t.Errorf("%s: %v, want %v", level, found[level], want)
		}
	}
}

// TestAzureLimit: three disks of 5000 IOPS serve Portworx; 392 MiB/s of Rook are below three disks' 200 MB/s.
func TestAzureLimit(t *testing.T) {
	t.Parallel()
	var limits []compare.Limit
	for _, text := range []string{"provider=Portworx,metric=Random read IOPS,max=15000",
		"provider=Rook-Ceph,metric=Sequential read,max=600MB/s"} {
		l, err := compare.ParseLimit(text, []string{"provider"})
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	r := azure(t, compare.Options{Limits: limits, AssumeBlock: 128 << 10})
	if len(r.Flags) != 1 || r.Flags[0].Level != "Portworx" || r.Flags[0].Name != "aboveLimit" {
		t.Fatalf("flags %+v", r.Flags)
	}
	if !strings.Contains(r.Flags[0].Evidence, "20 of 20 values") {
		t.Error(r.Flags[0].Evidence)
	}
	for _, c := range r.Comparisons {
		flagged := c.Metric == "Random read IOPS" && (c.A == "Portworx" || c.B == "Portworx")
		if (c.Verdict == verdict.None) != flagged {
			t.Errorf("%s", c.Sentence)
		}
	}
}

// TestSwappedColumns finds the two providers whose write columns are swapped in a published table.
func TestSwappedColumns(t *testing.T) {
	t.Parallel()
	table := tableOf(t, "fsync-study-2021.csv", imported.Columns{Factors: []string{"provider"}, Metric: "metric",
		Unit: "unit", Mean: "mean", SD: "sd"})
	r, err := compare.Run(table, compare.Options{AssumeBlock: 128 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Flags {
		got = append(got, f.Level+": "+f.Metric)
	}
	want := []string{
		"Longhorn (unencrypted backing disk): write bandwidth, no fsync",
		"Longhorn (unencrypted backing disk): write IOPS, no fsync",
		"Gluster: write bandwidth, no fsync", "Gluster: write IOPS, no fsync",
		"Gluster: write bandwidth, fsync=1", "Gluster: write IOPS, fsync=1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("flags\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range r.Comparisons {
		swapped := strings.Contains(c.Reason, "does not fit its block size")
		if c.Verdict != verdict.None || c.P != nil || c.Ratio == nil || !swapped && !strings.Contains(c.Reason,
			"needs the column of n too (cnsbench import csv --n COLUMN)") {
			t.Errorf("%s", c.Sentence)
		}
	}
}
