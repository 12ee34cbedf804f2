package recovery

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const second = op.Time(1e9)

// outage is the truth of a simulated server: no operation in [down, up), then a linear warm-up of warm to the level.
type outage struct{ down, up, warm float64 }

// series has the operations per second of a server, in slices of one second from 0 to seconds, those without
// operations left out, with noise of the given CV.
func (o outage) series(seconds int, cv float64, random *rand.Rand) bundle.Series {
	s := bundle.Series{Series: metric.Series{Metric: "tps", Unit: metric.PerSecond, Step: int64(second),
		Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher}}}
	s.Instance = "pg-0"
	for i := range seconds {
		sum := 0.0
		for j := range 1000 {
			t := float64(i) + (float64(j)+0.5)/1000
			switch {
			case t < o.down:
				sum++
			case t < o.up:
			default:
				sum += min(1, (t-o.up)/max(o.warm, 1e-9))
			}
		}
		if v := sum * (1 + cv*random.NormFloat64()); v > 0 {
			s.Points = append(s.Points, metric.Point{At: op.Time(i) * second, Value: v})
		}
	}
	return s
}

func recoveries(t *testing.T, s bundle.Series, until op.Time, ws ...dataset.Window) []Recovery {
	t.Helper()
	d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: []bundle.Series{s}}
	d.Bundle.Run.EndedAt = until
	return Of(d, ws, Share)
}

func kill(at float64) dataset.Window {
	from := op.Time(at * 1e9)
	return dataset.Window{Op: 7, Action: "kill", Kind: op.Kill, Target: "pg-0", From: from, To: from + second}
}

// TestTruth recovers when a simulated server answered again and when it was back at nine tenths of its level.
func TestTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		down := 15 + 5*random.Float64()
		o := outage{down: down, up: down + 2.5 + 8*random.Float64(), warm: 6 * random.Float64()}
		list := recoveries(t, o.series(60, 0.02, random), 60*second, kill(down))
		if len(list) != 1 || list[0].Serving == nil || list[0].Recovered.AtLeast {
			t.Fatalf("%+v: %+v", o, list)
		}
		r := list[0]
		if got, want := float64(r.Serving.Ns)/1e9, o.up-o.down; got < want-0.51 || got > want+0.51 {
			t.Errorf("%+v: serving after %.2f s, want %.2f", o, got, want)
		}
		// With noise of 2 % the limit may be crossed one slice off.
		if got, want := float64(r.Recovered.Ns)/1e9, o.up-o.down+Share*o.warm; got < want-1.6 || got > want+1.6 {
			t.Errorf("%+v: recovered after %.2f s, want %.2f", o, got, want)
		}
	}
}

func TestEdges(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	never := outage{down: 20, up: 1e9}
	tests := []struct {
		name    string
		series  bundle.Series
		until   op.Time
		window  dataset.Window
		n       int
		serving *Time
		least   bool // of Recovered
		from    int64
		to      int64
	}{
		{"not disturbed", outage{down: 99, up: 99}.series(60, 0, random), 60 * second, kill(20), 1, nil, false, 0, 1e9},
		{"never back", never.series(60, 0, random), 60 * second, kill(20), 1, &Time{Ns: 40e9, AtLeast: true}, true, 40e9,
			40e9},
		{"the run ends during the warm-up", outage{20, 23, 100}.series(30, 0, random), 30 * second, kill(20), 1,
			&Time{Ns: 3.5e9, ErrorNs: 5e8}, true, 5e9, 10e9},
		{"no level before", outage{down: 2, up: 3}.series(60, 0, random), 60 * second, kill(2), 0, nil, false, 0, 0},
		{"another instance", outage{down: 99}.series(60, 0, random), 60 * second,
			dataset.Window{Kind: op.Kill, Target: "pg-1", From: 20 * second}, 0, nil, false, 0, 0},
		{"a snapshot replaces nothing", outage{down: 99}.series(60, 0, random), 60 * second,
			dataset.Window{Kind: op.Snapshot, Target: "pg-0", From: 20 * second}, 0, nil, false, 0, 0},
	}
	for _, tt := range tests {
		list := recoveries(t, tt.series, tt.until, tt.window)
		if len(list) != tt.n {
			t.Errorf("%s: %+v", tt.name, list)
			continue
		}
		if tt.n == 0 {
			continue
		}
		r := list[0]
		if (r.Serving == nil) != (tt.serving == nil) || r.Serving != nil && *r.Serving != *tt.serving {
			t.Errorf("%s: serving %+v, want %+v", tt.name, r.Serving, tt.serving)
		}
		if x := r.Recovered; x.AtLeast != tt.least || x.Ns < tt.from || x.Ns > tt.to {
			t.Errorf("%s: recovered %+v, want %d to %d", tt.name, x, tt.from, tt.to)
		}
	}
}

// TestNextOp: what the next op on the instance does is none of an op's: its own times are lower bounds from there on.
func TestNextOp(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	next := func(target string, kind op.Kind, at float64) dataset.Window {
		w := kill(at)
		w.Op, w.Kind, w.Target = 8, kind, target
		return w
	}
	for _, tt := range []struct {
		name      string
		truth     outage
		next      dataset.Window
		serving   *Time
		recovered Time
	}{
		{"the outage is the next op's", outage{down: 26, up: 28}, next("pg-0", op.Reattach, 26), nil,
			Time{Ns: 0, ErrorNs: 5e8}},
		{"no time to recover", outage{down: 23, up: 28}, next("pg-0", op.Reattach, 23), nil, Time{Ns: 0, AtLeast: true}},
		{"away until the next op", outage{down: 20, up: 28}, next("pg-0", op.Kill, 24), &Time{Ns: 4e9, AtLeast: true},
			Time{Ns: 4e9, AtLeast: true}},
		{"an op on another instance", outage{down: 20, up: 28}, next("pg-1", op.Kill, 24),
			&Time{Ns: 8.5e9, ErrorNs: 5e8}, Time{Ns: 8.5e9, ErrorNs: 5e8}},
		{"a snapshot replaces nothing", outage{down: 20, up: 28}, next("pg-0", op.Snapshot, 24),
			&Time{Ns: 8.5e9, ErrorNs: 5e8}, Time{Ns: 8.5e9, ErrorNs: 5e8}},
	} {
		list := recoveries(t, tt.truth.series(60, 0, random), 60*second, kill(20), tt.next)
		if len(list) == 0 || list[0].Op != 7 {
			t.Fatalf("%s: %+v", tt.name, list)
		}
		r := list[0]
		if (r.Serving == nil) != (tt.serving == nil) || r.Serving != nil && *r.Serving != *tt.serving {
			t.Errorf("%s: serving %+v, want %+v", tt.name, r.Serving, tt.serving)
		}
		if r.Recovered != tt.recovered {
			t.Errorf("%s: recovered %+v, want %+v", tt.name, r.Recovered, tt.recovered)
		}
	}
}

// TestUnreported: of a process that was killed, and has left nothing, it is not known whether it did anything. Where only
// a server was replaced its client has been there all along.
func TestUnreported(t *testing.T) {
	s := outage{down: 20, up: 30}.series(60, 0, rand.New(rand.NewPCG(13, 14)))
	d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: []bundle.Series{s}, Instances: []bundle.Instance{{Name: "pg-0",
		Starts: []op.InstanceStart{{Container: "pg"}, {Container: "pg~1", At: 22 * second}, {Container: "pg~2",
			At: 29 * second}}}}}
	d.Bundle.Run.EndedAt = 60 * second
	for _, serving := range []Time{{Ns: 2e9, AtLeast: true}, {Ns: 10.5e9, ErrorNs: 5e8}} {
		list := Of(d, []dataset.Window{kill(20)}, Share)
		if len(list) != 1 || list[0].Serving == nil || *list[0].Serving != serving {
			t.Errorf("%+v, want it to serve after %+v", list, serving)
		}
		d.Instances[0].Starts = append(d.Instances[0].Starts, op.InstanceStart{Container: "client"})
	}
}

// TestPhaseEnds: a rate that falls since the next phase asks for less is no op's doing.
func TestPhaseEnds(t *testing.T) {
	s := outage{down: 30, up: 50}.series(60, 0, rand.New(rand.NewPCG(9, 10)))
	d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: []bundle.Series{s}, Instances: []bundle.Instance{{Name: "pg-0",
		Starts: []op.InstanceStart{{Intended: 0}, {Intended: 30 * second, Phase: 1}}}}}
	d.Bundle.Run.EndedAt = 60 * second
	d.Spec.Actions = []dataset.Action{{Name: "pg", CreateObjSpec: &dataset.CreateObj{Phases: []dataset.Phase{{}}}}}
	list := Of(d, []dataset.Window{kill(27)}, Share)
	if len(list) != 1 || list[0].Serving != nil || list[0].Recovered != (Time{Ns: 0, AtLeast: true}) {
		t.Errorf("%+v", list)
	}
	if list := Of(d, []dataset.Window{kill(31)}, Share); len(list) != 0 {
		t.Errorf("a level of the phase before: %+v", list)
	}
}

// TestMissing: an op on a workload has a recovery, or the reason why not.
func TestMissing(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	away := outage{down: 99}.series(60, 0, random)
	away.Points = away.Points[21:] // the process that was killed has left nothing
	idle := outage{down: 0, up: 99}.series(60, 0, random)
	for i := range op.Time(60) {
		idle.Points = append(idle.Points, metric.Point{At: i * second})
	}
	for name, tt := range map[string]struct {
		series bundle.Series
		at     float64
		want   string
	}{
		"a crash": {away, 20, "a tool that is killed loses"},
		"too early": {outage{down: 99}.series(60, 0, random), 2,
			"its tool has 2 values of its rate in the 10 s before it: want 3"},
		"idle":      {idle, 20, "it did nothing in the 10 s before it"},
		"no values": {outage{down: 30}.series(9, 0, random), 20, "its tool has 0 values"},
		"a row":     {outage{down: 99}.series(60, 0, random), 20, ""},
	} {
		d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: []bundle.Series{tt.series},
			Instances: []bundle.Instance{{Name: "pg-0"}, {Name: "pg-1"}}}
		if name == "a crash" {
			d.Instances[0].Starts = []op.InstanceStart{{Container: "pg"}, {Container: "pg~1", At: 21 * second}}
		}
		d.Bundle.Run.EndedAt = 60 * second
		ws := []dataset.Window{kill(tt.at)}
		list := MissingFrom(Of(d, ws, Share), d, ws)
		switch {
		case tt.want == "" && len(list) == 0:
		case len(list) != 1 || list[0].Instance != "pg-0" || !strings.Contains(list[0].Reason, tt.want) || tt.want == "":
			t.Errorf("%s: %+v, want %q", name, list, tt.want)
		}
	}
}

// TestTurns: a tool that runs its tests one after another has no recovery, since the end of a test looks like an outage;
// reads and writes at the same time have one each.
func TestTurns(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for name, tt := range map[string]struct {
		set, get outage
		n        int
	}{
		"in turn":       {outage{down: 22, up: 40}, outage{down: 0, up: 22}, 0},
		"together":      {outage{down: 20, up: 24}, outage{down: 20, up: 24}, 2},
		"never stopped": {outage{down: 99}, outage{down: 99}, 2},
	} {
		set, get := tt.set.series(60, 0.01, random), tt.get.series(60, 0.01, random)
		get.Metric = "get.rps"
		d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: []bundle.Series{set, get}}
		d.Bundle.Run.EndedAt = 60 * second
		if list := Of(d, []dataset.Window{kill(20)}, Share); len(list) != tt.n {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

// TestGroups: a lower bound below the median makes the median one.
func TestGroups(t *testing.T) {
	at := func(ns int64, least bool) Recovery {
		return Recovery{Control: "kill", Action: "pg", Metric: "tps", Level: 100, Recovered: Time{Ns: ns, AtLeast: least}}
	}
	tests := []struct {
		list        []Recovery
		median, max Time
		notYet      int
	}{
		{[]Recovery{at(3, false), at(1, false), at(2, false)}, Time{Ns: 2}, Time{Ns: 3}, 0},
		{[]Recovery{at(3, true), at(1, false), at(2, false)}, Time{Ns: 2}, Time{Ns: 3, AtLeast: true}, 1},
		{[]Recovery{at(3, false), at(1, true), at(2, false)}, Time{Ns: 2, AtLeast: true}, Time{Ns: 3, AtLeast: true}, 1},
	}
	for _, tt := range tests {
		groups := Groups(tt.list, Share)
		if len(groups) != 1 {
			t.Fatalf("%+v", groups)
		}
		if s := groups[0].Recovered; s.Median != tt.median || s.Max != tt.max || s.NotYet != tt.notYet || s.N != 3 {
			t.Errorf("%+v: %+v", tt.list, s)
		}
	}
}

func TestTimeString(t *testing.T) {
	for _, tt := range []struct {
		time Time
		want string
	}{
		{Time{Ns: 3.5e9, ErrorNs: 5e8}, "3.5 s"},
		{Time{Ns: 20e9, AtLeast: true}, "≥ 20 s"},
		{Time{Ns: 0, ErrorNs: 5e8}, "< 500 ms"},
		{Time{Ns: 4e8, ErrorNs: 5e8}, "< 900 ms"},
	} {
		if got := tt.time.String(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.time, got, tt.want)
		}
	}
}
