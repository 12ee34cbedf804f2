// Package analysistest writes synthetic bundles whose truth is known: latencies,
// stalls and failures that were put in must come out of the analysis.
package analysistest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// Times of the run, in ns.
const (
	Millisecond = op.Time(1e6)
	Second      = op.Time(1e9)
	Barrier     = 2 * Second
	End         = 62 * Second
	Interval    = 10 * Millisecond // of the canary
)

// Freeze is a stall that was put in: no write completes on Volume in it.
type Freeze struct {
	Volume   string
	Instance int // of the op in snapshots
	From, To op.Time
}

// Truth is what was put into the bundle.
type Truth struct {
	Freezes []Freeze
	// Responses of the snapshots that were ok, in order of their start.
	Responses []int64
}

// SLOs of the synthetic run and the verdicts they deserve.
var SLOs = []struct{ Name, Expr, Want string }{
	{"ready", `p99(snapshots.ready) < duration("10s")`, "fail"}, // one op was dropped
	{"typical", `p50(snapshots.ready) < duration("1s")`, "pass"},
	{"quiet", `p99(fio.canaryWrite, during("snapshots")) < 2.0 * p99(fio.canaryWrite, outside("snapshots"))`, "fail"},
	{"reads", `p99(fio.canaryRead.service) < duration("10ms") && iops(fio.read) > 1000`, "pass"},
	{"resizes", `p99(resizes) < duration("1s")`, "noData"},
}

func labels(instance, action string) bundle.Labels {
	return bundle.Labels{Instance: instance, Action: action}
}

// Demo writes a bundle of three fio instances, each with a canary, under
// snapshots each 1.5 s in turn, of which one was dropped, one failed and one
// had not ended. The directory is the test's. It is the same for every call.
func Demo(t testing.TB) (*bundle.Bundle, Truth) {
	t.Helper()
	w := create(t, Spec())
	g := &generator{w: w, random: rand.New(rand.NewPCG(1, 2))}
	g.creates()
	g.snapshots()
	for i := range 3 {
		g.canary(i)
		g.fio(i)
	}
	if err := w.Environment(environment()); err != nil {
		t.Fatal(err)
	}
	w.Log(Barrier, "run", "barrier opened")
	keepLogs(t, w, func(add func(op.Time, string, string)) {
		for at := op.Time(0); at <= End; at += Second / 4 {
			add(at, "driver loop", fmt.Sprintf("alive at %d ms", at/Millisecond))
		}
	})
	return finish(t, w), g.truth
}

// Empty writes a bundle without ops and workloads.
func Empty(t testing.TB) *bundle.Bundle {
	t.Helper()
	return finish(t, create(t, `{"actions":[]}`))
}

// Killed writes the bundle of a run that was killed, with a few ops.
func Killed(t testing.TB) *bundle.Bundle {
	t.Helper()
	w := create(t, Spec())
	g := &generator{w: w, random: rand.New(rand.NewPCG(1, 2))}
	g.creates()
	return killed(t, w)
}

// killed returns the bundle of a killed process.
func killed(t testing.TB, w *bundle.Writer) *bundle.Bundle {
	t.Helper()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(dir, os.DirFS(w.Dir())); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Objects writes the bundle of an object workload on its own: one stage, of whose
// 100 reads three failed.
func Objects(t testing.TB) *bundle.Bundle {
	t.Helper()
	w := create(t, `{"actions":[]}`)
	h := hist.New()
	_ = h.RecordN(5_000_000, 97) // cannot fail: the value is positive
	w.Histogram(bundle.HistogramSlice{Labels: labels("main", "main"),
		Histogram: metric.Histogram{Metric: "read", Unit: "ns", To: Second, Hist: h}, Total: true})
	for name, value := range map[string]float64{"read.iops": 97, "read.failed": 3} {
		w.Scalar(bundle.Scalar{Labels: labels("main", "main"), Scalar: metric.Scalar{Metric: name, Value: value}})
	}
	return finish(t, w, objectRun)
}

// Hostile is a bundle whose every name would be markup.
func Hostile(t testing.TB) *bundle.Bundle {
	t.Helper()
	const evil = `"><script src="https://evil.example/x.js"></script><img src=x onerror=alert(1)>`
	w := create(t, `{"actions":[{"name":`+quote(evil)+`}],"slos":[{"name":`+quote(evil)+`,"expr":`+quote(evil)+`}]}`)
	for i := range int64(40) {
		w.Op(op.Op{ID: i, Action: evil, Kind: op.Kind(evil), Target: evil, Intended: op.Time(i) * Second,
			Started: op.Time(i) * Second,
			Ended:   op.Time(i)*Second + 5*Millisecond, Outcome: op.OK, Object: evil, Node: evil,
			Milestones: []op.Milestone{{Name: evil, At: op.Time(i)*Second + Millisecond}}})
	}
	w.Op(op.Op{ID: 99, Action: evil, Kind: op.Kind(evil), Intended: 1, Started: 1, Ended: 2, Outcome: op.Error,
		Code: evil, Message: evil})
	slow := op.CanaryIO{Intended: Barrier, Started: Barrier, Ended: Barrier + 80*Millisecond, Write: true}
	w.Canary(evil, evil, []op.CanaryIO{slow})
	h := hist.New()
	_ = h.RecordN(5_000_000, 400) // cannot fail: the value is positive
	w.Histogram(bundle.HistogramSlice{Labels: labels(evil, evil),
		Histogram: metric.Histogram{Metric: evil, Unit: "ns", To: Second, Hist: h}})
	w.Histogram(bundle.HistogramSlice{Labels: labels(evil, evil),
		Histogram: metric.Histogram{Metric: evil, Unit: "ns", To: Second, Hist: h}, Total: true})
	w.Log(0, evil, evil)
	keepLogs(t, w, func(add func(op.Time, string, string)) {
		add(1, evil, evil+"\x1b[2J\a\u202e\xff password=hunter2")
	})
	return finish(t, w)
}

// keepLogs keeps the lines that log adds around the ops of a bundle, as a run does.
func keepLogs(t testing.TB, w *bundle.Writer, log func(add func(at op.Time, source, line string))) {
	t.Helper()
	selected, err := oplog.Select(w.EndedOps())
	if err != nil {
		t.Fatal(err)
	}
	c := selected.Collect(redact.NewLines())
	log(c.Add)
	w.OpLogs(selected.About, c.Records())
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string can always be encoded
	return string(b)
}

// Spec is the synthetic Benchmark.
func Spec() string {
	slos := make([]map[string]string, len(SLOs))
	for i, s := range SLOs {
		slos[i] = map[string]string{"name": s.Name, "expr": s.Expr}
	}
	b, _ := json.Marshal(map[string]any{ // plain maps can always be encoded
		"actions": []map[string]any{
			{"name": "fio", "createObjSpec": map[string]any{"workload": "fio", "count": 3, "syncGroup": "main"}},
			{"name": "snapshots", "rateName": "often", "snapshotSpec": map[string]any{"actionName": "fio",
				"snapshotClass": "loop"}},
		},
		"rates": []map[string]any{{"name": "often", "constantRateSpec": map[string]any{"interval": "1500ms"}}},
		"slos":  slos,
	})
	return string(b)
}

func create(t testing.TB, spec string, change ...func(*bundle.Run)) *bundle.Writer {
	t.Helper()
	run := bundle.Run{
		ID: "r20260102-synthetic", Name: "synthetic", Engine: "local", Seed: 42,
		Spec:     json.RawMessage(spec),
		Source:   bundle.Source{File: "synthetic.yaml", Text: "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\n"},
		Versions: map[string]string{"cnsbench": "v0.1.0", "go": "go1.26"},
		Clock: bundle.ClockInfo{Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Source: "CLOCK_MONOTONIC",
			Resolution: 1},
		BarrierAt: Barrier, EndedAt: op.Never,
	}
	for _, c := range change {
		c(&run)
	}
	w, err := bundle.Create(filepath.Join(t.TempDir(), "bundle"), run)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func finish(t testing.TB, w *bundle.Writer, change ...func(*bundle.Run)) *bundle.Bundle {
	t.Helper()
	err := w.Close(func(r *bundle.Run) {
		r.State, r.EndedAt = bundle.Complete, End+Second
		for _, c := range change {
			c(r)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func environment() bundle.Environment {
	return bundle.Environment{
		CollectedAt: time.Date(2026, 1, 2, 3, 4, 4, 0,
			time.UTC), Hostname: "bench-1", OS: "Debian GNU/Linux 12 (bookworm)",
		Kernel:  bundle.Kernel{Release: "6.12.0", Arch: "x86_64"},
		CPU:     bundle.CPU{Model: "Synthetic CPU", Count: 4, Governor: "performance"},
		Memory:  bundle.Memory{Total: 8 << 30, Available: 6 << 30},
		Devices: []bundle.BlockDevice{{Name: "vda", Bytes: 64 << 30, Scheduler: "none", LogicalBlock: 512}},
		Filesystems: []bundle.Filesystem{{Path: "/var/tmp", Mount: "/", Type: "xfs", Source: "/dev/vda1",
			Options: "rw,noatime"}},
		Tools:  map[string]string{"fio": "fio-3.33", "mkfs.xfs": "mkfs.xfs version 6.1.0"},
		Engine: map[string]any{"driver": "loopfile.csi.cnsbench.dev", "version": "v0.1.0"},
	}
}

type generator struct {
	w      *bundle.Writer
	random *rand.Rand
	truth  Truth
	ids    int64
}

// volume of instance i.
func volume(i int) string { return fmt.Sprintf("fio-%d-data", i) }

func (g *generator) id() int64 {
	g.ids++
	return g.ids
}

// creates records the three workloads' ops, all milestones on the way.
func (g *generator) creates() {
	for i := range 3 {
		start := op.Time(i) * Millisecond
		at := start
		o := op.Op{
			ID: g.id(), Episode: 1, Action: "fio", Instance: i, Kind: op.Create, Target: fmt.Sprintf("fio-%d", i),
			Node:     "bench-1",
			Intended: 0, Started: start, Attempts: 4, Outcome: op.OK, Object: fmt.Sprintf("fio-%d", i),
		}
		mark := func(name string, after op.Time) {
			at += after
			o.Milestones = append(o.Milestones, op.Milestone{Name: name, At: at, Source: "csi"})
		}
		for _, rpc := range []struct {
			name string
			ms   op.Time
		}{{"CreateVolume", 210}, {"ControllerPublishVolume", 8}, {"NodeStageVolume", 55}, {"NodePublishVolume", 4}} {
			mark(rpc.name+".start/data", 0)
			mark(rpc.name+".end/data", (rpc.ms+op.Time(i))*Millisecond)
		}
		mark(op.Published+"/data", 0)
		mark(op.FirstWrite+"/data", 3*Millisecond)
		mark(op.Initialized, 900*Millisecond)
		mark(op.Running, 12*Millisecond)
		mark(op.Ready, 1*Millisecond)
		o.Ended = at
		g.w.Op(o)
	}
}

// snapshots records 40 ops; the freeze of each lies in its CreateSnapshot.
func (g *generator) snapshots() {
	for i := range 40 {
		due := Barrier + op.Time(i+1)*1500*Millisecond - Second
		start := due + op.Time(g.random.Int64N(300_000))
		freeze := op.Time(60+g.random.Int64N(60)) * Millisecond
		if i == 7 {
			freeze = 312 * Millisecond
		}
		from := start + 20*Millisecond + op.Time(g.random.Int64N(int64(Interval)))
		o := op.Op{
			ID: g.id(), Episode: int64(i + 2), Action: "snapshots", Instance: i, Kind: op.Snapshot, Target: volume(i % 3),
			Node:     "bench-1",
			Intended: due, Started: start, Ended: from + freeze + 15*Millisecond, Attempts: 1, Outcome: op.OK,
			Object: fmt.Sprintf("snap-%d", i),
			Milestones: []op.Milestone{
				{Name: "CreateSnapshot.start", At: start + Millisecond, Source: "csi"},
				{Name: "CreateSnapshot.end", At: from + freeze + 5*Millisecond, Source: "csi"},
				{Name: op.Taken, At: from + freeze + 5*Millisecond, Source: "runner"},
				{Name: op.Ready, At: from + freeze + 15*Millisecond, Source: "runner"},
			},
		}
		switch i {
		case 20:
			o.Outcome, o.Code, o.Message = op.Error, "ResourceExhausted", "CreateSnapshot: no space left in the pool"
			o.Ended, o.Milestones = start+4*Millisecond, o.Milestones[:1]
		case 25:
			o.Outcome, o.Code, o.Message = op.Dropped, "Saturated", "maxInFlight reached"
			o.Started, o.Ended, o.Milestones = op.Never, op.Never, nil
		case 39:
			o.Outcome, o.Code, o.Message = op.Censored, "RunEnded", "the run ended before the op did"
			o.Ended, o.Milestones = start+100*Millisecond, o.Milestones[:1]
		default:
			g.truth.Freezes = append(g.truth.Freezes,
				Freeze{Volume: o.Target, Instance: i, From: from, To: from + freeze})
			g.truth.Responses = append(g.truth.Responses, int64(o.Ended-o.Intended))
		}
		g.w.Op(o)
	}
}

// frozen is the freeze of a volume at an instant, if there is one.
func (g *generator) frozen(volume string, at op.Time) (Freeze, bool) {
	for _, f := range g.truth.Freezes {
		if f.Volume == volume && f.From <= at && at < f.To {
			return f, true
		}
	}
	return Freeze{}, false
}

// canary records a write and a read each interval; writes wait for a thaw.
func (g *generator) canary(i int) {
	var ios []op.CanaryIO
	for at := Barrier; at < End; at += Interval {
		for _, write := range []bool{true, false} {
			io := op.CanaryIO{Intended: at, Started: at + 20_000, Write: write}
			io.Ended = io.Started + 300_000 + op.Time(g.random.ExpFloat64()*100_000)
			if f, ok := g.frozen(volume(i), at); ok && write {
				io.Ended = f.To + op.Time(100_000+g.random.Int64N(200_000))
			}
			ios = append(ios, io)
		}
	}
	for len(ios) > 0 {
		n := min(200, len(ios))
		g.w.Canary(fmt.Sprintf("fio-%d", i), volume(i), ios[:n])
		ios = ios[n:]
	}
}

// fio records what a parser would: a slice and a point of series each second,
// totals, and single figures; reads 400 a second, writes 100.
func (g *generator) fio(i int) {
	name := fmt.Sprintf("fio-%d", i)
	g.w.Started(op.InstanceStart{Instance: name, Container: "fio", Intended: Barrier,
		At: Barrier + op.Time(i+1)*Millisecond, Err: 50_000})
	for _, m := range []struct {
		metric string
		perSec int
	}{{"read", 400}, {"write", 100}} {
		total := hist.New()
		iops := bundle.Series{Labels: labels(name, "fio"),
			Series: metric.Series{Metric: m.metric + ".iops", Unit: "1/s", Step: int64(Second)}}
		bandwidth := bundle.Series{Labels: labels(name, "fio"),
			Series: metric.Series{Metric: m.metric + ".bandwidth", Unit: "B/s", Step: int64(Second)}}
		for at := Barrier; at < End; at += Second {
			h := hist.New()
			n := m.perSec*9/10 + g.random.IntN(m.perSec/5)
			for range n {
				_ = h.Record(800_000 + int64(g.random.ExpFloat64()*300_000)) // cannot fail: positive
			}
			for _, f := range g.truth.Freezes {
				if f.Volume == volume(i) && m.metric == "write" && f.To >= at && f.To < at+Second {
					_ = h.RecordN(int64(f.To-f.From), 4)
				}
			}
			_ = total.Merge(h)
			g.w.Histogram(bundle.HistogramSlice{
				Labels: labels(name, "fio"),
				Histogram: metric.Histogram{Metric: m.metric, Unit: "ns", Basis: "clat", From: at, To: at + Second,
					Hist: h},
			})
			iops.Points = append(iops.Points, metric.Point{At: at, Value: float64(n)})
			bandwidth.Points = append(bandwidth.Points, metric.Point{At: at, Value: float64(n) * 4096})
		}
		g.w.Series(iops)
		g.w.Series(bandwidth)
		g.w.Histogram(bundle.HistogramSlice{
			Labels: labels(name, "fio"),
			Histogram: metric.Histogram{Metric: m.metric, Unit: "ns", Basis: "lat", From: Barrier, To: End,
				Hist: total},
			Total: true,
		})
		g.w.Scalar(bundle.Scalar{Labels: labels(name, "fio"),
			Scalar: metric.Scalar{Metric: m.metric + ".iops", Unit: "1/s", Value: float64(m.perSec)}})
		g.w.Scalar(bundle.Scalar{Labels: labels(name, "fio"),
			Scalar: metric.Scalar{Metric: m.metric + ".bandwidth", Unit: "B/s", Value: float64(m.perSec) * 4096}})
	}
	for at := Barrier; at <= End; at += Second {
		s := int64((at - Barrier) / Second)
		g.w.Sample(op.Sample{Instance: name, At: at, ReadBytes: s * 410 * 4096, WriteBytes: s * 100 * 4096,
			CPUNanos: s * 2e8})
	}
	g.w.Ended(op.InstanceEnd{Instance: name, At: End, OK: true, Containers: []op.ContainerEnd{{Name: "fio"}}})
}
