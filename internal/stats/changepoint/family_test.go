package changepoint

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFindAll: of families of ten stable series few have a change, and a shift of one of ten is found.
func TestFindAll(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	const families, size = 40, 10
	alarms, found := 0, 0
	for i := range uint64(families) {
		stable, shifted := make([][]float64, size), make([][]float64, size)
		for j := range stable {
			stable[j] = history(random, 40, nil)
			shifted[j] = history(random, 40, nil)
		}
		shifted[3] = history(random, 40, map[int]float64{20: 4})
		shifted[5] = shifted[5][:7] // too short
		some := false
		all, err := FindAll(stable, Options{Seed: i})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			some = some || len(f.Changes) > 0
		}
		if some {
			alarms++
		}
		if all, err = FindAll(shifted, Options{Seed: i}); err != nil {
			t.Fatal(err)
		}
		if c := all[3].Changes; len(c) == 1 && c[0].Index >= 17 && c[0].Index <= 23 && c[0].P <= 0.03 && all[3].Family == 9 {
			found++
		}
		if all[5].Changes != nil {
			t.Errorf("a series of 7 has changes: %+v", all[5])
		}
	}
	t.Logf("of %d families: %d stable ones alarmed, %d shifts of one series found", families, alarms, found)
	if alarms > 4 || found < families*9/10 { // 5 or more of 40 at 3 %: a probability of 0.6 %
		t.Errorf("of %d families: %d stable ones alarmed, %d shifts of one series found", families, alarms, found)
	}
}

// TestOutliers: an outlier is named in its place, on either side of a change, and is no change.
func TestOutliers(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	series := history(random, 40, map[int]float64{20: 6})
	series[7] *= 2
	series[33] /= 2
	stable := history(random, 40, nil)
	stable[30] *= 2
	all, err := FindAll([][]float64{series, stable}, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c := all[0].Changes; len(c) != 1 || c[0].Index < 19 || c[0].Index > 21 || len(all[1].Changes) != 0 {
		t.Errorf("changes: %+v; %+v", c, all[1].Changes)
	}
	for i, want := range [][]int{{7, 33}, {30}} {
		for _, at := range want {
			if !slices.Contains(all[i].Outliers, at) || len(all[i].Outliers) > len(want)+3 {
				t.Errorf("series %d: outliers %v, want %v and few more", i, all[i].Outliers, want)
			}
		}
	}
}
