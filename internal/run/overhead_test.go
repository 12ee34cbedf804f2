package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestOverhead: the level goes down one step after each window of samples that took more than allowed, not below the
// least, and by the sum of all instances. A window lacks those samples of its last instant that come after the first.
func TestOverhead(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	for _, tt := range []struct {
		name  string
		costs map[op.SampleLevel]int64 // of a sample, each second, of each of two instances
		least op.SampleLevel
		want  []bundle.SamplingStep
	}{
		{"cheap", map[op.SampleLevel]int64{op.SampleDetailed: 4 * ms}, op.SampleNone, nil},
		{"detailed is too dear", map[op.SampleLevel]int64{op.SampleDetailed: 6 * ms, op.SampleBasic: 1 * ms},
			op.SampleNone, []bundle.SamplingStep{{At: op.Time(6e9), Level: op.SampleBasic, Overhead: 0.0108}}},
		{"both are", map[op.SampleLevel]int64{op.SampleDetailed: 10 * ms, op.SampleBasic: 6 * ms}, op.SampleNone,
			[]bundle.SamplingStep{{At: op.Time(6e9), Level: op.SampleBasic, Overhead: 0.018},
				{At: op.Time(12e9), Level: op.SampleNone, Overhead: 0.0132}}},
		{"conditions need samples", map[op.SampleLevel]int64{op.SampleDetailed: 10 * ms, op.SampleBasic: 6 * ms},
			op.SampleBasic, []bundle.SamplingStep{{At: op.Time(6e9), Level: op.SampleBasic, Overhead: 0.018}}},
	} {
		o := &overhead{max: 0.01, least: tt.least, level: op.SampleDetailed, spent: map[string]int64{}, from: op.Never}
		level, spent := op.SampleDetailed, 50*ms // the first reading is not of the window
		var got []bundle.SamplingStep
		for at := op.Time(1e9); at < op.Time(30e9) && level != op.SampleNone; at += op.Time(1e9) {
			for _, instance := range []string{"a", "b"} {
				step, ok := o.add(op.Sample{Instance: instance, At: at, Level: level, SamplerNanos: spent})
				if ok {
					got = append(got, step)
				}
			}
			if n := len(got); n > 0 {
				level = got[n-1].Level
			}
			spent += tt.costs[level]
		}
		for i := range got {
			got[i].Overhead = float64(int64(got[i].Overhead*1e4+0.5)) / 1e4
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// leveler is an engine that keeps the level of samples.
type leveler struct {
	engine.Engine
	level op.SampleLevel
}

func (l *leveler) SetSampleLevel(level op.SampleLevel) { l.level = level }

// TestVolumeReadingsCost: what drivers report of volumes costs as samples of the level detailed do.
func TestVolumeReadingsCost(t *testing.T) {
	t.Parallel()
	e := &leveler{level: op.SampleDetailed}
	r := &runner{Config: Config{Engine: e, Clock: op.NewClock(), Record: &memory{}, Observer: quiet{}},
		overhead: &overhead{max: 0.01, least: op.SampleNone, level: op.SampleDetailed, spent: map[string]int64{},
			from: op.Never}}
	for at := range op.Time(12) {
		(&sink{r}).Volume(op.VolumeReading{Volume: "v", Driver: "a.example", At: at * 1e9, SamplerNanos: int64(at) * 20e6})
	}
	want := []bundle.SamplingStep{{At: op.Time(5e9), Level: op.SampleBasic, Overhead: 0.02}}
	if diff := cmp.Diff(want, r.result.Samplings); diff != "" || e.level != op.SampleBasic {
		t.Errorf("level %s: %s", e.level, diff)
	}
}
