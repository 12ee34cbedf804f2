package interference

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const second = op.Time(1e9)

// databases has the operations per second of n instances in slices of one second: 100, and during(instance, second) of
// that; slices of 0 are left out, as some tools do. They are observed until the end.
func databases(n, seconds int, during func(instance, second int) float64) *dataset.Data {
	random := rand.New(rand.NewPCG(1, 2))
	d := &dataset.Data{Bundle: &bundle.Bundle{}}
	d.Bundle.Run.EndedAt = op.Time(seconds) * second
	for i := range n {
		s := bundle.Series{Series: metric.Series{Metric: "tps", Unit: metric.PerSecond, Step: int64(second),
			Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher}}}
		s.Instance = fmt.Sprintf("db-%d", i)
		for k := range seconds {
			if v := 100 * during(i, k) * (1 + 0.05*random.NormFloat64()); v > 0 {
				s.Points = append(s.Points, metric.Point{At: op.Time(k) * second, Value: v})
			}
		}
		d.Series = append(d.Series, s)
	}
	return d
}

// snapshotsOf are snapshots of one volume, each within a second.
func snapshotsOf(instance int, seconds ...int) (ws []dataset.Window) {
	for k, at := range seconds {
		from := op.Time(at)*second + second/4
		ws = append(ws, dataset.Window{Op: int64(at), Action: "snapshots", Kind: op.Snapshot, Instance: k,
			Target: fmt.Sprintf("db-%d-data", instance), From: from, To: from + second/2})
	}
	return ws
}

// busy has the times of windows.
func busy(d *dataset.Data, ws []dataset.Window) *dataset.Busy {
	b := d.NewBusy()
	for i := range ws {
		b.Add(&ws[i])
	}
	b.Done()
	return b
}

func every(from, to, step int) (list []int) {
	for i := from; i < to; i += step {
		list = append(list, i)
	}
	return list
}

// TestRateEffects: the injected drops of throughput, of the snapshotted instance and of others, are within the
// intervals, by instance and of all.
func TestRateEffects(t *testing.T) {
	at := every(5, 200, 10)
	d := databases(2, 200, func(instance, k int) float64 {
		switch {
		case k%10 != 5:
			return 1
		case instance == 0:
			return 0.4
		}
		return 0.8
	})
	effects := RateEffects(d, busy(d, snapshotsOf(0, at...)), 7)
	if len(effects) != 3 {
		t.Fatalf("%d effects, want of all, db-0 and db-1: %+v", len(effects), effects)
	}
	within := func(what string, r *Ratio, want float64) {
		t.Helper()
		if r == nil || r.Low > want || r.High < want || r.High-r.Low > 0.16 {
			t.Errorf("%s: %+v, want %v", what, r, want)
		}
	}
	for i, want := range []struct {
		instance       string
		own, bystander float64 // 0: none
	}{{"", 0.4, 0.8}, {"db-0", 0.4, 0}, {"db-1", 0, 0.8}} {
		e := effects[i]
		if e.Instance != want.instance || e.Control != "snapshots" || e.Action != "db" || e.Metric != "tps" ||
			e.Unit != "1/s" {
			t.Errorf("%+v, want %+v", e, want)
		}
		if want.own > 0 {
			within(e.Instance+" own", e.OwnRatio, want.own)
		} else if e.OwnRatio != nil || e.Own.N != 0 {
			t.Errorf("%+v", e)
		}
		if want.bystander > 0 {
			within(e.Instance+" bystander", e.BystanderRatio, want.bystander)
		} else if e.BystanderRatio != nil || e.Bystander.N != 0 {
			t.Errorf("%+v", e)
		}
	}
	if e := effects[1]; e.Own.N != 20 || e.Outside.N != 180 || e.Outside.Mean < 98 || e.Outside.Mean > 102 {
		t.Errorf("%+v", e)
	}
}

// TestRateEffectOfSilence: slices that the tool left out, because nothing was done, count as 0.
func TestRateEffectOfSilence(t *testing.T) {
	d := databases(1, 100, func(_, k int) float64 {
		if k%5 == 2 {
			return 0
		}
		return 1
	})
	effects := RateEffects(d, busy(d, snapshotsOf(0, every(2, 95, 5)...)), 7)
	if len(effects) != 1 || effects[0].OwnRatio == nil || effects[0].OwnRatio.High > 0 || effects[0].Own.N != 19 {
		t.Errorf("%+v", effects)
	}
	if effects := RateEffects(d, busy(d, nil), 7); effects != nil {
		t.Errorf("without ops: %+v", effects)
	}
	few := RateEffects(d, busy(d, snapshotsOf(0, 2, 12)), 7)
	if len(few) != 1 || few[0].OwnRatio != nil || few[0].Own.N != 2 {
		t.Errorf("an interval of two slices: %+v", few)
	}
}

// TestZeroPeriods: times without operations have the op in progress when they began, on this volume or another; those
// that chance makes are left out.
func TestZeroPeriods(t *testing.T) {
	d := databases(2, 100, func(instance, k int) float64 {
		switch {
		case instance == 0 && (k < 3 || 20 <= k && k < 23 || 50 <= k && k < 51), instance == 1 && k >= 90:
			return 0
		}
		return 1
	})
	list := Find(d, d.End()).ZeroPeriods(snapshotsOf(0, 19, 40, 92))
	want := []struct {
		instance     string
		from, length op.Time
		named        string
		ends         bool
	}{
		{"db-0", 20, 3, "snapshots/0", true}, {"db-0", 50, 1, "none", true},
		{"db-1", 90, 9, "none", false}, // the snapshot at 92 s began later
	}
	if len(list) != len(want) {
		t.Fatalf("%d periods: %+v", len(list), list)
	}
	for i, w := range want {
		z := list[i]
		if z.Instance != w.instance || z.From != w.from*second || z.LengthNs != int64(w.length*second) ||
			z.Named() != w.named || z.To.Known() != w.ends || z.ErrorNs != int64(second) || z.Source != Operations {
			t.Errorf("%+v (%s), want %+v", z, z.Named(), w)
		}
	}
	for i := range d.Series[0].Points { // one operation a second by chance
		d.Series[0].Points[i].Value = 1
	}
	for _, z := range Find(d, d.End()).ZeroPeriods(nil) {
		if z.Instance == "db-0" {
			t.Errorf("a gap in which 3 operations were due: %+v", z)
		}
	}
}

// TestOfKilled: a process that was killed and has left nothing is not known to have done nothing: its time is neither one
// without operations nor slices of 0.
func TestOfKilled(t *testing.T) {
	d := databases(1, 100, func(_, k int) float64 {
		if 40 <= k && k < 60 {
			return 0
		}
		return 1
	})
	d.Instances = []bundle.Instance{{Name: "db-0", Starts: []op.InstanceStart{{Container: "db"},
		{Container: "db~1", At: 42 * second}, {Container: "db~2", At: 59 * second}}}}
	list := Find(d, d.End()).ZeroPeriods(nil)
	if len(list) != 1 || list[0].From != 40*second || list[0].To != 42*second || list[0].LengthNs != int64(2*second) {
		t.Errorf("%+v, want the 2 s in which there was no process", list)
	}
	effects := RateEffects(d, busy(d, snapshotsOf(0, 10, 20, 30)), 7)
	if len(effects) != 1 || effects[0].Outside.N != 100-20-3+1 { // the slice of 40 s, when there was no process
		t.Errorf("%+v", effects)
	}
}

// TestZeroPeriodsInTurn: a tool that runs one test after another is not silent while one of them runs.
func TestZeroPeriodsInTurn(t *testing.T) {
	d := databases(1, 40, func(_, k int) float64 { return float64(min(1, max(0, 20-k))) })
	second := databases(1, 40, func(_, k int) float64 { return float64(min(1, max(0, k-19))) }).Series[0]
	second.Metric = "other"
	d.Series = append(d.Series, second)
	if list := Find(d, d.End()).ZeroPeriods(nil); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}
