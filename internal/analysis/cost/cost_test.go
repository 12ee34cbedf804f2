package cost_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const prices = `
currency: USD
source: an example
nodes:
  large: {perHour: 0.5}
  n3: {perHour: 2}
storageClasses:
  fast: {perGBMonth: 0.1, iops: 3000, perIOPSMonth: 0.005, mbps: 100, perMBpsMonth: 0.04, snapshotPerGBMonth: 0.05}
  slow: {perGiBMonth: 1}
requestsPerMillion: {GET: 0.4, PUT: 5}
transferOutPerGB: 0.09
`

func parse(t *testing.T, text string) *cost.Prices {
	t.Helper()
	p, err := cost.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// charge is the cost of a resource; NaN: it has none.
func charge(r *cost.Result, resource, name string) float64 {
	for _, c := range r.Charges {
		if c.Resource == resource && c.Name == name && c.Cost != nil {
			return *c.Cost
		}
	}
	return math.NaN()
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestOf compares a run of two hours with prices computed by hand.
func TestOf(t *testing.T) {
	t.Parallel()
	ios, moved := 4e6, 5e9
	u := &cost.Usage{Run: 2 * time.Hour,
		Nodes: []cost.Node{{"n1", "large"}, {"n2", "large"}, {"n3", "large"}, {"n4", "tiny"}},
		Classes: map[string]*cost.ClassUse{
			"fast":  {Volumes: 2, Snapshots: 1, VolumeHours: 4, ByteHours: 730e9, SnapshotByteHours: 73e9},
			"slow":  {Volumes: 1, VolumeHours: 2, ByteHours: 730 * 1073741824},
			"other": {Volumes: 1, VolumeHours: 2, ByteHours: 1e9}},
		Requests: map[string]float64{"GET": 2e6, "PUT": 1e5, "LIST": 10}, Received: 3e9, Ops: 500, IOs: &ios, Moved: &moved,
		Unobserved: []string{"something"}}
	r := cost.Of(u, parse(t, prices))
	total := 0.0
	for _, c := range []struct {
		resource, name string
		want           float64
	}{
		{"node", "large", 2 * 2 * 0.5}, {"node", "n3", 2 * 2}, // by its own name
		{"volume", "fast", 0.1}, {"volume", "slow", 1},
		{"provisioned IOPS", "fast", 3000 * 4.0 / 730 * 0.005}, {"provisioned throughput", "fast", 100 * 4.0 / 730 * 0.04},
		{"snapshot", "fast", 0.1 * 0.05}, {"GET requests", "", 0.8}, {"PUT requests", "", 0.5}, {"transfer out", "", 0.27},
	} {
		near(t, c.resource+" "+c.name, charge(r, c.resource, c.name), c.want)
		total += c.want
	}
	near(t, "total", *r.Total, total)
	want := []string{"node tiny: no price", "volume other: no price",
		"provisioned IOPS of slow: no price", "provisioned throughput of slow: no price", "LIST requests: no price", "something"}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(r.Without)); !slices.Equal(got, want) {
		t.Errorf("without %q, want %q", got, want)
	}
	provisioned := 1 + 1.073741824 + 1.0/730
	for i, w := range []float64{total, total / 500 * 1e6, total / 4, total / 5, total / provisioned} {
		near(t, r.Rates[i].Name, *r.Rates[i].Value, w)
	}
}

// TestUnknown: amounts that are unknown or 0, and a list that prices nothing that was used, give no rate.
func TestUnknown(t *testing.T) {
	t.Parallel()
	u := &cost.Usage{Run: time.Hour, Nodes: []cost.Node{{Name: "large"}}}
	r := cost.Of(u, parse(t, prices))
	near(t, "total", *r.Total, 0.5)
	for _, rate := range r.Rates {
		known := rate.Name == cost.PerTrial
		if (rate.Value != nil) != known || (rate.Reason == "") != known {
			t.Errorf("%+v", rate)
		}
	}
	r = cost.Of(u, parse(t, "currency: EUR\nnodes: {small: {perHour: 1}}"))
	if r.Total != nil || r.Rates[0].Value != nil || !slices.Equal(r.Without, []string{"node large: no price"}) {
		t.Errorf("%+v", r)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	free := cost.Of(u, parse(t, "currency: EUR\nnodes: {'*': {perHour: 0}}"))
	if free.Total == nil || *free.Total != 0 {
		t.Errorf("a price of 0 is a price: %+v", free)
	}
}

const hour = op.Time(3600e9)

const spec = `{"spec":{"actions":[
 {"name":"fio","createObjSpec":{"workload":"fio","count":2}},
 {"name":"vol","createObjSpec":{"volume":{"size":"2Gi","storageClass":"slow"}}},
 {"name":"snap","snapshotSpec":{"actionName":"fio"}},
 {"name":"back","restoreSpec":{"actionName":"snap","storageClass":"slow"}},
 {"name":"copy","cloneSpec":{"actionName":"vol","size":"3Gi"}},
 {"name":"grow","resizeSpec":{"actionName":"vol","increaseBy":"2Gi"}},
 {"name":"drop","deleteSpec":{"actionName":"snap"}}]}}`

const plan = `{"storageClasses":{"fast":"a","slow":"b"},"vars":{"fio":{"volumeSize":"1Gi"}},
 "variants":{"fio":[{"storageClass":"fast"},{"storageClass":"slow","volumeSize":"8Gi"}]}}`

// write makes the bundle of a run of four hours whose ops end at full hours.
func write(t *testing.T) *dataset.Data {
	t.Helper()
	return writeOf(t, spec, plan)
}

// writeOf is write with another spec and plan.
func writeOf(t *testing.T, spec, plan string) *dataset.Data {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "b"), bundle.Run{ID: "a", Name: "n", Engine: "local",
		Spec: json.RawMessage(spec), Plan: json.RawMessage(plan), BarrierAt: 0, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Environment(bundle.Environment{Hostname: "large"}); err != nil {
		t.Fatal(err)
	}
	for i, o := range []op.Op{
		{Action: "fio", Kind: op.Create, Target: "fio-0"}, {Action: "fio", Instance: 1, Kind: op.Create, Target: "fio-1"},
		{Action: "vol", Kind: op.Create, Target: "vol-0", Ended: hour},
		{Action: "snap", Kind: op.Snapshot, Target: "fio-0-data,fio-1-data", Ended: hour},
		{Action: "back", Kind: op.Restore, Target: "snap-0", Ended: 2 * hour},
		{Action: "copy", Kind: op.Clone, Target: "vol-0", Ended: 2 * hour},
		{Action: "grow", Kind: op.Resize, Target: "vol-0", Ended: 2 * hour},
		{Action: "drop", Kind: op.Delete, Target: "snap-0", Ended: 3 * hour},
		{Action: "drop", Kind: op.Restore, Target: "snap-0", Ended: 3 * hour}, // fits no action
	} {
		o.ID, o.Outcome = int64(i), op.OK
		w.Op(o)
	}
	h := hist.New()
	_ = h.RecordN(1000, 3000) // a valid value
	for _, name := range []string{"read", "canaryRead"} {
		w.Histogram(bundle.HistogramSlice{Labels: bundle.Labels{Instance: "fio-0", Action: "fio"}, Total: true,
			Histogram: metric.Histogram{Metric: name, Unit: "ns", Hist: h, To: hour}})
	}
	w.Started(op.InstanceStart{Instance: "fio-0", Container: "fio", Intended: 0, At: 0})
	w.Sample(op.Sample{Instance: "fio-0", At: hour, ReadBytes: 1e9, WriteBytes: 2e9, CPUNanos: 5e9})
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, 4*hour }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRead recovers the volumes and their times that were put into a bundle.
func TestRead(t *testing.T) {
	t.Parallel()
	u, err := cost.Read(write(t))
	if err != nil {
		t.Fatal(err)
	}
	const gib = 1 << 30
	fast, slow := u.Classes["fast"], u.Classes["slow"]
	near(t, "fast", fast.ByteHours, 1*4*gib)
	// fio-1: 8 for 4 h; vol-0: 2 for 1 h, then 4 for 2 h; the restored: 9 for 2 h; the clone: 3 for 2 h
	near(t, "slow", slow.ByteHours, (32+2+8+18+6)*gib)
	near(t, "volume hours", slow.VolumeHours, 4+3+2+2)
	near(t, "snapshots", fast.SnapshotByteHours+slow.SnapshotByteHours, 9*2*gib)
	near(t, "I/Os", *u.IOs, 3000)
	near(t, "bytes", *u.Moved, 3e9)
	near(t, "CPU", *u.CPUSeconds, 5)
	if u.Run != 4*time.Hour || u.Ops != 9 || fast.Volumes != 1 || slow.Volumes != 4 ||
		!slices.Equal(u.Nodes, []cost.Node{{Name: "large"}}) {
		t.Errorf("%+v", u)
	}
	r := cost.Of(u, parse(t, prices))
	near(t, "node", charge(r, "node", "large"), 4*0.5)
}

// TestHostileSizes: sizes of a damaged bundle are no negative cost, and do not overflow.
func TestHostileSizes(t *testing.T) {
	t.Parallel()
	u, err := cost.Read(writeOf(t, strings.ReplaceAll(spec, `"2Gi"`, `"8Ei"`),
		strings.ReplaceAll(plan, `"8Gi"`, `"-8Gi"`)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range u.Classes {
		if !(c.ByteHours >= 0 && c.SnapshotByteHours >= 0) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if got := u.Classes["slow"].ByteHours; !(got > 5*math.Exp2(63)) {
		t.Errorf("an expansion by 8 EiB for two hours, of 8 EiB before: %v", got)
	}
}
