package study

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
)

// TestCellCauses: causes of trials are joined by component, that which stands out first in most trials before others.
func TestCellCauses(t *testing.T) {
	low := 0.5
	cause := func(component string, share float64, out bool) attribution.Cause {
		return attribution.Cause{Component: component, Kind: attribution.Slow, Share: share, Low: &low, StandsOut: out,
			Evidence: "it takes long"}
	}
	share := func(component string, share, ns float64) attribution.Share {
		return attribution.Share{Component: component, Share: share, MeanNs: ns}
	}
	trials := []trialCauses{
		{"1_a", []attribution.Share{share("driver", 0.9, 9e6), share("kubelet", 0.1, 1e6)},
			[]attribution.Cause{cause("kubelet", 0.4, true), cause("driver", 0.3, true)}, false},
		{"2_a", []attribution.Share{share("driver", 0.8, 8e6), share("kubelet", 0.2, 2e6)},
			[]attribution.Cause{cause("driver", 0.6, true), cause("driver", 0.2, true), cause("kubelet", 0.1, false)},
			false},
		{"3_a", []attribution.Share{share("driver", 1, 7e6)}, []attribution.Cause{cause("driver", 0.9, true)}, false},
		{"4_a", []attribution.Share{share("driver", 1, 7e6)}, nil, true},
	}
	got := cellCauses("x", []Level{{"class", "a"}}, trials)
	want := CellCauses{Action: "x", Levels: []Level{{"class", "a"}}, Trials: 4, TooFew: 1,
		Components: []ComponentTime{{"driver", 7.5e6, 0.95}, {"kubelet", 5e5, 0.05}},
		Causes: []CellCause{
			{"driver", attribution.Slow, 3, 2, 0.6, 0.3, 0.9, "it takes long", "1_a"},
			{"kubelet", attribution.Slow, 1, 1, 0.4, 0.4, 0.4, "it takes long", "1_a"},
		},
		Sentence: "driver stands out in 3 of 4 trials, first in 2: beyond its ordinary time 60 % of the time (30 to 90); " +
			"it takes long (1_a); too few operations in 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := got.Times(), "driver 7.5 ms (95 %), kubelet 500 µs (5 %)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, tt := range []struct {
		trials []trialCauses
		want   string
	}{
		{trials[3:], "too few operations to say what stands out: want 10 in a trial"},
		{[]trialCauses{{"1_a", trials[0].shares, nil, false}, {"2_a", trials[0].shares, nil, false}},
			"none stands out in 2 of 2 trials"},
	} {
		if got := cellCauses("x", nil, tt.trials).Sentence; got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
