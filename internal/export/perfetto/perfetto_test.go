package perfetto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// readEvent is an event as a reader sees it.
type readEvent struct {
	Ph, Name, Cat string
	Pid, Tid      int
	At            json.Number `json:"ts"`
	Args          map[string]any
}

// readSlice is a begin with its end.
type readSlice struct {
	readEvent
	from, to int64 // ns
	parent   *readSlice
}

// trace is a parsed trace.
type trace struct {
	names    map[int]string // of processes and threads
	slices   []*readSlice
	instants []*readSlice // with the slice that they are in
	counters []readEvent
	about    map[string]any
}

// nanos converts the text of a timestamp exactly.
func nanos(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, part, _ := strings.Cut(string(n), ".")
	ns, err := strconv.ParseInt(whole+part, 10, 64)
	if err != nil || len(part) != 3 {
		t.Fatalf("timestamp %q: want µs with three decimals", n)
	}
	return ns
}

// write writes a bundle's trace and reads it as Perfetto does: sorted by time, stable, the slices of a thread on
// a stack.
func write(t *testing.T, b *bundle.Bundle) *trace {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), `{"displayTimeUnit":"ns"`) {
		t.Errorf("begins with %.60s", out.String())
	}
	var file struct {
		OtherData   map[string]any
		TraceEvents []readEvent
	}
	d := json.NewDecoder(&out)
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	tr := &trace{names: map[int]string{}, about: file.OtherData}
	events := file.TraceEvents
	slices.SortStableFunc(events, func(a, b readEvent) int {
		return int(max(-1, min(1, nanos(t, a.At)-nanos(t, b.At))))
	})
	stacks := map[int][]*readSlice{}
	for _, e := range events {
		at := nanos(t, e.At)
		if e.Ph != phMetadata && at < 0 {
			t.Errorf("%s %s at %d: before the trace", e.Ph, e.Name, at)
		}
		stack := stacks[e.Tid]
		var top *readSlice
		if len(stack) > 0 {
			top = stack[len(stack)-1]
		}
		switch e.Ph {
		case phMetadata:
			if name, ok := e.Args["name"].(string); ok {
				tr.names[max(e.Tid, 0)+b2i(e.Tid == 0)*e.Pid] = name
			}
		case phBegin:
			s := &readSlice{readEvent: e, from: at, to: math.MinInt64, parent: top}
			tr.slices = append(tr.slices, s)
			stacks[e.Tid] = append(stack, s)
		case phEnd:
			if top == nil {
				t.Fatalf("thread %s: an end without a begin at %d", tr.names[e.Tid], at)
			}
			top.to = at
			stacks[e.Tid] = stack[:len(stack)-1]
		case phInstant:
			tr.instants = append(tr.instants, &readSlice{readEvent: e, from: at, to: at, parent: top})
		case phCounter:
			tr.counters = append(tr.counters, e)
		default:
			t.Errorf("event of phase %q", e.Ph)
		}
	}
	for tid, stack := range stacks {
		if len(stack) > 0 {
			t.Errorf("thread %s: %s has no end", tr.names[tid], stack[0].Name)
		}
	}
	return tr
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	n, err := v.(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Each op is once in the trace with the times that were recorded; what is in an op lies within it, and the trace
// processor's stack finds the parents that were meant.
func TestOps(t *testing.T) {
	b, _ := analysistest.Demo(t)
	tr := write(t, b)
	drawnOps := map[int64]*readSlice{}
	for _, s := range slices.Concat(tr.slices, tr.instants) {
		if s.Cat != catOp {
			continue
		}
		id := number(t, s.Args["op"])
		if drawnOps[id] != nil {
			t.Errorf("op %d is twice in the trace", id)
		}
		drawnOps[id] = s
		if s.parent != nil {
			t.Errorf("op %d is within %s", id, s.parent.Name)
		}
	}
	end := int64(b.Run.EndedAt)
	n := 0
	for o, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		n++
		s := drawnOps[o.ID]
		if s == nil {
			t.Fatalf("%v is not in the trace", o)
		}
		want := [2]int64{int64(o.Intended), int64(o.Ended)}
		switch o.Outcome {
		case op.Dropped:
			want[1] = want[0]
		case op.Censored:
			want[1] = end
			if s.Args["censored"] != true {
				t.Errorf("%v is not marked as censored", &o)
			}
		}
		if got := [2]int64{s.from, s.to}; got != want {
			t.Errorf("%v is drawn at %v, want %v", &o, got, want)
		}
		if s.Name != o.Action || s.Args["outcome"] != string(o.Outcome) {
			t.Errorf("%v is drawn as %s %v", &o, s.Name, s.Args)
		}
		if v, ok := o.Lateness(); ok && number(t, s.Args["lateness_ns"]) != v {
			t.Errorf("%v: lateness %v, want %d", &o, s.Args["lateness_ns"], v)
		}
	}
	if len(drawnOps) != n {
		t.Errorf("%d ops in the trace, want %d", len(drawnOps), n)
	}
	services := 0
	for _, s := range slices.Concat(tr.slices, tr.instants) {
		if p := s.parent; p != nil && (s.from < p.from || s.to > p.to) {
			t.Errorf("%s [%d, %d] is not within %s [%d, %d]", s.Name, s.from, s.to, p.Name, p.from, p.to)
		}
		if s.Name == "service" {
			services++
			if s.parent == nil || s.parent.Cat != catOp || s.from != number(t, s.parent.Args["started_ns"]) {
				t.Errorf("service at %d is not of an op that started then", s.from)
			}
		}
	}
	if want := n - 1; services != want { // one was dropped
		t.Errorf("%d service times, want %d", services, want)
	}
}

// The tracks of an action are its targets; spans of calls are in the service time of their op.
func TestTracks(t *testing.T) {
	b, _ := analysistest.Demo(t)
	tr := write(t, b)
	threads := map[string]bool{}
	for _, s := range tr.slices {
		if s.Name == "CreateSnapshot" {
			threads[tr.names[s.Pid]+": "+tr.names[s.Tid]] = true
			if s.parent == nil || s.parent.Name != "service" || s.parent.parent.Name != "snapshots" {
				t.Errorf("CreateSnapshot at %d is within %+v", s.from, s.parent)
			}
		}
	}
	for i := range 3 {
		if want := fmt.Sprintf("action snapshots: fio-%d-data", i); !threads[want] {
			t.Errorf("no track %q: have %v", want, threads)
		}
	}
	ready := 0
	for _, m := range tr.instants {
		if m.Cat == catMilestone && m.Name == "ready" {
			ready++
		}
		if strings.HasSuffix(m.Name, ".end") {
			t.Errorf("%s is a slice's end and an instant", m.Name)
		}
	}
	if want := 3 + 37; ready != want { // a snapshot failed, one was dropped, one had not ended
		t.Errorf("%d ready, want %d", ready, want)
	}
}

// Counters have the values of the series, and are 0 after them.
func TestCounters(t *testing.T) {
	b, _ := analysistest.Demo(t)
	tr := write(t, b)
	want, got := map[string]float64{}, map[string]float64{}
	last := map[string]float64{}
	for s, err := range b.Series() {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Points {
			want[s.Instance+" "+s.Metric+" "+s.Unit] += p.Value
		}
	}
	for _, c := range tr.counters {
		for unit, v := range c.Args {
			f, err := v.(json.Number).Float64()
			if err != nil {
				t.Fatal(err)
			}
			key := c.Name + " " + unit
			last[key] = f
			if _, ok := want[key]; ok {
				got[key] += f
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("sums of counters: -want +got:\n%s", diff)
	}
	for key := range want {
		if last[key] != 0 {
			t.Errorf("%s is %g after its last point", key, last[key])
		}
	}
	// The agent's counters are rates that add up to what was read.
	bytes, before := 0.0, int64(0)
	rate := 0.0
	for _, c := range tr.counters {
		if c.Name == "fio-0 read.bandwidth (sampled)" {
			bytes += rate * float64(nanos(t, c.At)-before) / 1e9
			rate, _ = c.Args["B/s"].(json.Number).Float64()
			before = nanos(t, c.At)
		}
	}
	if want := 60 * 410 * 4096.0; math.Abs(bytes-want) > 1 {
		t.Errorf("the agent's counter adds up to %g B, want %g", bytes, want)
	}
	if p99 := last["fio-0 read.p99 ns"]; p99 != 0 {
		t.Errorf("p99 after the end is %g", p99)
	}
	if _, ok := last["fio-0 read.p99 ns"]; !ok {
		t.Error("no counter of the p99 of reads")
	}
	if _, ok := last["fio-0 write.p99 ns"]; ok {
		t.Error("a p99 of 100 writes, which are too few for it")
	}
}

// The stalls of the trace are those of the summary, on the tracks of their volumes.
func TestStalls(t *testing.T) {
	b, truth := analysistest.Demo(t)
	tr := write(t, b)
	sum, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	type stall struct {
		volume   string
		from, to int64
		during   string
	}
	var want, got []stall
	for _, s := range sum.Stalls {
		want = append(want, stall{s.Volume, int64(s.From), int64(s.To), s.Named()})
	}
	for _, s := range tr.slices {
		if s.Cat == catStall {
			got = append(got, stall{tr.names[s.Tid], s.from, s.to, s.Args["during"].(string)})
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(stall{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(got) < len(truth.Freezes) {
		t.Errorf("%d stalls of %d freezes", len(got), len(truth.Freezes))
	}
}

// create writes a bundle of ops.
func create(t testing.TB, n int, makeOp func(i int) op.Op) *bundle.Bundle {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "bundle"), bundle.Run{ID: "r1", Name: "ops", Engine: "local",
		Spec: json.RawMessage(`{"actions":[]}`), BarrierAt: 0})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		o := makeOp(i)
		o.ID, o.Action, o.Instance = int64(i), "make", i
		w.Op(o)
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, 1e9 }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Ops that overlap are on lanes of their own, no more than overlap at once.
func TestLanes(t *testing.T) {
	b := create(t, 400, func(i int) op.Op { // each 100 long, 4 at once
		at := op.Time(25 * i)
		return op.Op{Kind: op.Create, Target: fmt.Sprint(i), Intended: at, Started: at, Ended: at + 100, Outcome: op.OK}
	})
	tr := write(t, b)
	lanes := map[string]int{}
	for _, s := range tr.slices {
		if s.Cat == catOp {
			lanes[tr.names[s.Tid]]++
			if s.to-s.from != 100 || s.parent != nil {
				t.Errorf("[%d, %d] within %v", s.from, s.to, s.parent)
			}
		}
	}
	if want := map[string]int{"make": 100, "make #2": 100, "make #3": 100, "make #4": 100}; !cmp.Equal(want, lanes) {
		t.Errorf("lanes %v, want %v: too many targets share the action's", lanes, want)
	}
}

// Spans that overlap are on a row of their own; a call is in the step that makes it; waits, a
// milestone of a clock that is ahead and one before the run's start are shown where they are.
func TestSpans(t *testing.T) {
	b := create(t, 1, func(int) op.Op {
		return op.Op{Kind: op.Create, Target: "a", Intended: 0, Started: 100, Ended: 1000, Outcome: op.OK,
			Milestones: []op.Milestone{{Name: "early", At: -1500}, {Name: op.Unblocked, At: 60}, {Name: op.Acked, At: 200},
				{Name: "provisioned/a", At: 400}, {Name: "provisioned/b", At: 600}, {Name: op.Scheduled, At: 610},
				{Name: "NodePublishVolume.start/a", At: 650}, {Name: "NodePublishVolume.end/a", At: 700},
				{Name: op.Sandboxed, At: 800}, {Name: op.Running, At: 1000}, {Name: op.Ready, At: 1200}}}
	})
	tr := write(t, b)
	if tr.about["zero_ns"] != json.Number("-1500") {
		t.Errorf("zero is %v", tr.about["zero_ns"])
	}
	var got []string
	for _, s := range slices.Concat(tr.slices, tr.instants) {
		if s.Cat == "run" {
			continue
		}
		in := ""
		if s.parent != nil {
			in = " in " + s.parent.Name
		}
		got = append(got, fmt.Sprintf("%s: %s [%d, %d]%s", tr.names[s.Tid], s.Name, s.from-1500, s.to-1500, in))
	}
	want := []string{
		"a: make [0, 1000]", "a: blocked [0, 60] in make", "a: late [60, 100] in make", "a: service [100, 1000] in make",
		"a: acked [100, 200] in service", "a: provisioned/a [200, 400] in service",
		"a, parallel spans 1: provisioned/b [200, 600]", "a, parallel spans 2: scheduled [200, 610]",
		"a: sandboxed [610, 800] in service", "a: NodePublishVolume/a [650, 700] in sandboxed",
		"a: running [800, 1000] in service", "a, parallel spans 1: ready [1000, 1200]",
		"a, parallel spans 1: early [-1500, -1500]", "a: unblocked [60, 60] in make", "a: acked [200, 200] in service",
		"a: provisioned/a [400, 400] in service", "a: provisioned/b [600, 600] in service",
		"a: scheduled [610, 610] in service", "a: sandboxed [800, 800] in service", "a: running [1000, 1000] in make",
		"a, parallel spans 1: ready [1200, 1200]",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Every kind of bundle makes a trace that can be read.
func TestBundles(t *testing.T) {
	for name, b := range map[string]*bundle.Bundle{"empty": analysistest.Empty(t), "killed": analysistest.Killed(t),
		"objects": analysistest.Objects(t), "cut off": analysistest.CutOff(t), "hostile": analysistest.Hostile(t),
		"servers": analysistest.Servers(t)} {
		t.Run(name, func(t *testing.T) {
			if tr := write(t, b); len(tr.slices) == 0 {
				t.Error("nothing is in the trace")
			}
		})
	}
}

// A reader that takes only windows around stalls finds the ops that all windows give.
func TestWindows(t *testing.T) {
	b, _ := analysistest.Demo(t)
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := look(d)
	if err != nil {
		t.Fatal(err)
	}
	all, err := d.Windows()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.windows) == 0 || len(s.windows) >= len(all) {
		t.Errorf("%d windows of %d: want some", len(s.windows), len(all))
	}
}

// A failing writer ends the export with its error.
func TestWriteError(t *testing.T) {
	b, _ := analysistest.Demo(t)
	r, w := io.Pipe()
	_ = r.CloseWithError(io.ErrShortWrite) // never fails
	if err := Write(w, b); err == nil || !strings.Contains(err.Error(), "short write") {
		t.Errorf("error %v", err)
	}
}

// A lane is used again from the instant at which it is free, not before, and the one that became free last.
func TestLane(t *testing.T) {
	g := newTracks(newWriter(io.Discard, 0, nil)).process("p").group("g")
	var got []int
	for _, span := range [][2]op.Time{{0, 10}, {9, 20}, {10, 15}, {15, 16}, {20, 30}, {5, 40}} {
		got = append(got, g.lane(span[0], span[1]).number)
	}
	if want := []int{0, 1, 0, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("lanes %v, want %v", got, want)
	}
}
