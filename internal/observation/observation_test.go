package observation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/observation"
)

var latency = observation.Metric{Name: "latency", Unit: "ms"}

// table has values of one level on one day.
func table(m observation.Metric, values ...float64) *observation.Table {
	b := observation.NewBuilder([]string{"provider"}, "day", "")
	for _, v := range values {
		b.Add(observation.Row{Levels: []string{"a"}, Occasion: "monday", Metric: m, Value: v})
	}
	return b.Table()
}

// TestJoin: the occasions of different tables are different ones, though their names are equal.
func TestJoin(t *testing.T) {
	t.Parallel()
	got, err := observation.Join("version", []string{"old", "new"}, []*observation.Table{table(latency, 1, 2),
		table(latency, 3)})
	if err != nil {
		t.Fatal(err)
	}
	want := &observation.Table{Factors: []string{"version", "provider"}, Metrics: []observation.Metric{latency},
		Cells: [][]string{{"old", "a"}, {"new", "a"}}, OccasionName: "day", Occasions: []string{"1/monday", "2/monday"},
		Series: map[observation.Key][]observation.Value{
			{}:        {{Value: 1, Block: -1, Repetition: 1}, {Value: 2, Block: -1, Repetition: 2}},
			{Cell: 1}: {{Value: 3, Occasion: 1, Block: -1, Repetition: 1}},
		}, Aggregates: map[observation.Key]observation.Aggregate{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestJoinErrors(t *testing.T) {
	t.Parallel()
	other := observation.NewBuilder([]string{"size"}, "", "").Table()
	for says, second := range map[string]*observation.Table{
		`latency has the unit "ms" in old and "us" in new`: table(observation.Metric{Name: "latency", Unit: "us"}, 1),
		"no metric in common":                              table(observation.Metric{Name: "rate"}, 1),
		"have other factors (provider; size)":              other,
	} {
		_, err := observation.Join("version", []string{"old", "new"}, []*observation.Table{table(latency, 1), second})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}
