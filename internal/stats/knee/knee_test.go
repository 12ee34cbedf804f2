package knee

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

var powers = []int{4, 8, 16, 32, 64, 128, 256, 512}

// curve draws repetitions of a throughput with noise of so many %.
func curve(levels []int, repetitions int, noise float64, seed uint64, x func(w float64) float64) []Level {
	rng := rand.New(rand.NewPCG(seed, 1))
	var list []Level
	for _, w := range levels {
		l := Level{Workers: w}
		for range repetitions {
			l.PerSecond = append(l.PerSecond, x(float64(w))*(1+noise/100*rng.NormFloat64()))
		}
		list = append(list, l)
	}
	return list
}

// hockey grows in proportion up to a knee, and not beyond.
func hockey(at float64) func(float64) float64 {
	return func(w float64) float64 { return 90 * min(w, at) }
}

func TestKnownKnees(t *testing.T) {
	tests := []struct {
		name   string
		levels []int
		x      func(float64) float64
		want   int // 0: none
		says   string
	}{
		{"at a level", powers, hockey(64), 64,
			"the knee is at 64 workers: from there on no step gains 10 % for each doubling; the intervals allow no other level"},
		{"between two levels", powers, hockey(100), 128, "at 128 workers"},
		{"just behind a level", powers, hockey(67), 64, "at 64 workers"},
		{"below the first", powers, hockey(2), 4, "at 4 workers or below"},
		{"not reached", powers, hockey(5000), 0, "no knee up to 512 workers: the last step still gains 100 %"},
		// its peak is at 100 (Gunther's law)
		{"it falls behind the peak", powers, func(w float64) float64 { return w / (1 + 0.001*w + 0.0001*w*w) }, 64,
			"at 64 workers"},
		{"levels that are no doublings", []int{1, 2, 3, 5, 10, 20, 30, 100}, hockey(20), 20, "at 20 workers"},
		// The seed study: saturated at 64 workers, peak of 5644 a second at 128.
		{"the seed study's", powers, func(w float64) float64 {
			return map[float64]float64{4: 700, 8: 1350, 16: 2500, 32: 4200, 64: 5400, 128: 5644, 256: 5600,
				512: 5590}[w]
		}, 64, "at 64 workers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(20) {
				k, err := Find(curve(tt.levels, 5, 1, seed, tt.x), Threshold)
				if err != nil {
					t.Fatal(err)
				}
				got := 0
				if k.Workers != nil {
					got = *k.Workers
				}
				if got != tt.want {
					t.Errorf("seed %d: %v, want %d", seed, k, tt.want)
				}
			}
			k, _ := Find(curve(tt.levels, 5, 0.5, 1, tt.x), Threshold)
			if !strings.Contains(k.String(), tt.says) {
				t.Errorf("%s, want in it: %s", k, tt.says)
			}
		})
	}
}

// Of knees drawn at random between levels, with noise of 5 %, the interval has
// the level at which a curve without noise has it as often as it should: each of
// its two ends rests on steps that are classed rightly 95 times in 100.
func TestIntervalHasTheKnee(t *testing.T) {
	const runs = 400
	missed, bounded := 0, 0
	rng := rand.New(rand.NewPCG(9, 9))
	for seed := range uint64(runs) {
		x := hockey(math.Exp(math.Log(6) + rng.Float64()*math.Log(60)))
		truth, _ := Find(curve(powers, 5, 0, 0, x), Threshold)
		k, err := Find(curve(powers, 5, 5, seed, x), Threshold)
		if err != nil {
			t.Fatal(err)
		}
		if k.AtLeast != nil && k.AtMost != nil {
			bounded++
		}
		if truth.Workers == nil || k.AtLeast != nil && *k.AtLeast > *truth.Workers || k.AtMost != nil &&
			*k.AtMost < *truth.Workers {
			missed++
		}
	}
	if missed > runs/10 {
		t.Errorf("%d of %d intervals miss the knee", missed, runs)
	}
	if bounded < runs/3 {
		t.Errorf("only %d of %d have both ends", bounded, runs)
	}
}

func TestTooLittle(t *testing.T) {
	k, err := Find(curve(powers, 3, 1, 1, hockey(64)), Threshold)
	if err != nil || *k.Workers != 64 || k.AtLeast != nil || k.AtMost != nil ||
		!strings.Contains(k.String(), "too few") {
		t.Errorf("%v, %v: three repetitions have no interval", k, err)
	}
	for _, bad := range [][]Level{nil, {{4, []float64{1}}}, {{4, []float64{1}}, {8, nil}},
		{{4, []float64{0}}, {8, []float64{1}}}, {{4, []float64{1}}, {4, []float64{1}}}} {
		if k, err := Find(bad, Threshold); err == nil {
			t.Errorf("%v has %v", bad, k)
		}
	}
}
