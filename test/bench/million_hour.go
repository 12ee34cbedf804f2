package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	millisecond = op.Time(1e6)
	second      = op.Time(1e9)
	hourBarrier = 30 * second
	hourMachine = "6c1f9e0a-2b7d-4c55-9d3e-0a1b2c3d4e5f"
	// oneFreezeIn is how many snapshots there are for each that stalls its volume.
	oneFreezeIn = 2000
)

// hour writes the bundle of a run that did not happen: a run of an hour takes an hour, and one of 200 workloads more
// than one machine. Its records are those of a run: instances of a workload with a canary, a sample of their processes
// each second and the series of their tool, and volumes that are created, deleted and snapshotted.
type hour struct {
	ops, instances, seconds int
	canary                  bool // each volume has one

	w       *bundle.Writer
	random  *rand.Rand
	id      int64
	pending []op.Op   // not yet ended
	frozen  []op.Time // by instance: until when its volume is
}

func newHour(ops, instances, seconds int, seed uint64) *hour {
	return &hour{ops: ops, instances: instances, seconds: seconds, canary: true, random: rand.New(rand.NewPCG(seed, 3)),
		frozen: make([]op.Time, instances)}
}

func (h *hour) end() op.Time { return hourBarrier + op.Time(h.seconds)*second }

// write writes the bundle in the order of a run, second by second.
func (h *hour) write(ctx context.Context, dir string) (err error) {
	clock := bundle.ClockInfo{Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Source: "CLOCK_MONOTONIC", Resolution: 1}
	h.w, err = bundle.Create(dir, bundle.Run{ID: "r20260102-hour", Name: "hour", Engine: "local", Seed: 42,
		Spec: fmt.Appendf(nil, hourSpec, h.instances), Versions: map[string]string{"cnsbench": "v0.1.0"},
		Clock: clock, BarrierAt: hourBarrier, EndedAt: op.Never,
		Sampling: &bundle.Sampling{Level: op.SampleBasic, IntervalNs: int64(second)}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.w.Close(func(r *bundle.Run) { r.EndedAt = h.end() + second })) }()
	if err := h.w.Environment(bundle.Environment{Hostname: "bench", CPU: bundle.CPU{Count: 64}}); err != nil {
		return err
	}
	h.starts()
	for s := range h.seconds {
		h.controls(s)
		if h.canary {
			h.canaries(s)
		}
		h.samples(s)
		if err := errors.Join(ctx.Err(), h.w.Flush()); err != nil {
			return err
		}
	}
	h.endPending(math.MaxInt64)
	for i := range h.instances {
		h.outputs(i)
		if err := h.w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// hourSpec has the actions and objectives that the analysis reads, of as many instances.
const hourSpec = `{"actions": [
  {"name": "db", "createObjSpec": {"workload": "db", "count": %d}},
  {"name": "volumes", "rateName": "arrivals", "createObjSpec": {"volume": {"storageClass": "pool", "size": "1Gi"}}},
  {"name": "removals", "rateName": "departures", "deleteSpec": {"actionName": "volumes"}},
  {"name": "snapshots", "rateName": "often", "snapshotSpec": {"actionName": "db"}}
], "rates": [
  {"name": "arrivals", "poissonRateSpec": {"perSecond": 93}},
  {"name": "departures", "poissonRateSpec": {"perSecond": 93}},
  {"name": "often", "poissonRateSpec": {"perSecond": 92}}
], "slos": [
  {"name": "volumes", "expr": "p99(volumes.ready) < duration(\"500ms\") && rate(volumes) > 10.0"},
  {"name": "quiet",
    "expr": "p99(db.canaryWrite, during(\"snapshots\")) < 2.0 * p99(db.canaryWrite, outside(\"snapshots\"))"},
  {"name": "throughput", "expr": "iops(db.read) > 1000"}
]}`

func instanceName(i int) string { return fmt.Sprintf("db-%d", i) }

func volumeName(i int) string { return instanceName(i) + "-data" }

// starts records the ops that created the instances, and their starts.
func (h *hour) starts() {
	for i := range h.instances {
		due := op.Time(i) * 10 * millisecond
		o := h.op("db", i, op.Create, instanceName(i), due)
		h.milestones(&o, "CreateVolume.start/data", "CreateVolume.end/data", "NodePublishVolume.start/data",
			"NodePublishVolume.end/data", op.Published+"/data", op.Initialized, op.Running, op.Ready)
		h.w.Op(o)
		h.w.Started(op.InstanceStart{Instance: instanceName(i), Container: "db", Intended: hourBarrier,
			At: hourBarrier + op.Time(h.random.Int64N(2e6)), Err: 50_000, Machine: hourMachine})
	}
}

func (h *hour) op(action string, instance int, kind op.Kind, target string, due op.Time) op.Op {
	h.id++
	start := due + op.Time(h.random.Int64N(300_000))
	return op.Op{ID: h.id, Episode: h.id, Action: action, Instance: instance, Kind: kind, Target: target, Node: "bench",
		Intended: due, Started: start, Attempts: 1, Outcome: op.OK, Object: target}
}

// milestones adds milestones of a CSI driver that share a latency of a lognormal distribution, and the op's end.
func (h *hour) milestones(o *op.Op, names ...string) {
	at, length := o.Started, 20e6*math.Exp(0.5*h.random.NormFloat64())
	for _, name := range names {
		at += op.Time(length * h.random.Float64() * 2 / float64(len(names)))
		o.Milestones = append(o.Milestones, op.Milestone{Name: name, At: at, Source: "csi"})
	}
	o.Ended = at + 20_000
}

// controls records the ops that are due in a second, and of those before the ones that end in it.
func (h *hour) controls(s int) {
	all := h.ops - h.instances
	from, to := all*s/h.seconds, all*(s+1)/h.seconds
	for i := from; i < to; i++ {
		due := hourBarrier + op.Time(s)*second + second*op.Time(i-from)/op.Time(to-from)
		h.pending = append(h.pending, h.control(i, due))
	}
	h.endPending(hourBarrier + op.Time(s+1)*second)
}

// endPending records the ops that have ended, in the order of their ends.
func (h *hour) endPending(before op.Time) {
	at := func(o op.Op) op.Time { return max(o.Ended, o.Intended) }
	slices.SortStableFunc(h.pending, func(a, b op.Op) int { return int(at(a) - at(b)) })
	n := 0
	for n < len(h.pending) && at(h.pending[n]) < before {
		h.w.Op(h.pending[n])
		n++
	}
	h.pending = slices.Delete(h.pending, 0, n)
}

// control makes the i-th op: a third of them each creates, deletes, and snapshots.
func (h *hour) control(i int, due op.Time) op.Op {
	name := fmt.Sprintf("volumes-%d", i/3)
	var o op.Op
	switch i % 3 {
	case 0:
		o = h.op("volumes", i/3, op.Create, name, due)
		h.milestones(&o, op.Acked, "CreateVolume.start", "CreateVolume.end", op.Provisioned, op.Ready)
	case 1:
		o = h.op("removals", i/3, op.Delete, name, due)
		h.milestones(&o, op.Acked, "DeleteVolume.start", "DeleteVolume.end", op.Gone)
	default:
		of := h.random.IntN(h.instances)
		o = h.op("snapshots", i/3, op.Snapshot, volumeName(of), due)
		o.Object = fmt.Sprintf("snapshots-%d", i/3)
		h.milestones(&o, op.Acked, "CreateSnapshot.start", "CreateSnapshot.end", op.Taken, op.Ready)
		if h.random.IntN(oneFreezeIn) == 0 {
			h.freeze(&o, of)
		}
	}
	h.fail(&o)
	return o
}

// freeze makes the call of a snapshot longer; no write of the volume completes in it.
func (h *hour) freeze(o *op.Op, instance int) {
	long := op.Time(1e9 + h.random.Int64N(2e9))
	for i := 2; i < len(o.Milestones); i++ {
		o.Milestones[i].At += long
	}
	o.Ended += long
	h.frozen[instance] = o.Milestones[2].At
}

// fail makes one op of 200 an error, one of 2000 a timeout, and one of 5000 dropped.
func (h *hour) fail(o *op.Op) {
	switch n := h.random.IntN(10_000); {
	case n < 50:
		o.Outcome, o.Code, o.Message = op.Error, "ResourceExhausted", "no space left in the pool"
		o.Milestones, o.Ended = o.Milestones[:2], o.Milestones[1].At+millisecond
	case n < 55:
		o.Outcome, o.Code, o.Message = op.Timeout, "DeadlineExceeded", "context deadline exceeded"
		o.Milestones, o.Ended = o.Milestones[:2], o.Started+10*second
	case n < 57:
		o.Outcome, o.Code, o.Message = op.Dropped, "Saturated", "maxInFlight reached"
		o.Milestones, o.Started, o.Ended = nil, op.Never, op.Never
	}
}

// canaries records a write and a read of each volume in a second; a write waits until the volume is not frozen.
func (h *hour) canaries(s int) {
	for i := range h.instances {
		due := hourBarrier + op.Time(s)*second
		var ios []op.CanaryIO
		for _, write := range []bool{true, false} {
			x := op.CanaryIO{Intended: due, Started: due + 20_000, Write: write}
			x.Ended = x.Started + 300_000 + op.Time(h.random.ExpFloat64()*100_000)
			if write && h.frozen[i] > due {
				x.Ended = h.frozen[i] + op.Time(100_000+h.random.Int64N(200_000))
			}
			ios = append(ios, x)
		}
		h.w.Canary(instanceName(i), volumeName(i), ios)
	}
}

// samples records a reading of the machine and of each instance's processes.
func (h *hour) samples(s int) {
	at := hourBarrier + op.Time(s)*second
	n := int64(s)
	h.w.Machine(op.Machine{ID: hourMachine, At: at, MachineCounters: op.MachineCounters{CPUs: 64, BusyNanos: n * 22e9,
		IdleNanos: n * 42e9, Runnable: 20, CPUPressureNanos: n * 1e7, IOPressureNanos: n * 1e8, MemoryPressureNanos: 0},
		Use: &op.MachineUse{RunNanos: n * 21e9, OtherNanos: n * 5e8,
			Top: []op.ProcessUse{{PID: 1, Name: "systemd", CPUNanos: 1e7}}}})
	for i := range h.instances {
		h.w.Sample(op.Sample{Instance: instanceName(i), At: at + op.Time(h.random.Int64N(1e7)), ReadBytes: n * 2000 * 4096,
			WriteBytes: n * 500 * 4096, ReadOps: n * 2000, WriteOps: n * 500, CPUNanos: n * 1e8, RSSBytes: 64 << 20,
			Level: op.SampleBasic, SamplerNanos: n * 30_000})
	}
}

// outputs records what a tool's parser reads at the end of an instance.
func (h *hour) outputs(i int) {
	name := instanceName(i)
	labels := bundle.Labels{Instance: name, Action: "db"}
	for _, m := range []struct {
		metric    string
		perSecond float64
	}{{metric.Read, 2000}, {metric.Write, 500}} {
		total := hist.New()
		iops := metric.Series{Metric: m.metric + metric.IOPS, Unit: metric.PerSecond, Step: int64(second)}
		bandwidth := metric.Series{Metric: m.metric + metric.Bandwidth, Unit: metric.BytesPerSecond, Step: int64(second)}
		for s := range h.seconds {
			at := hourBarrier + op.Time(s)*second
			v := math.Round(100*m.perSecond*(1+0.1*h.random.NormFloat64())) / 100
			_ = total.RecordN(int64(4e5*math.Exp(0.3*h.random.NormFloat64())), int64(v)) // cannot fail: positive
			iops.Points = append(iops.Points, metric.Point{At: at, Value: v})
			bandwidth.Points = append(bandwidth.Points, metric.Point{At: at, Value: 4096 * v})
		}
		h.w.Series(bundle.Series{Labels: labels, Series: iops})
		h.w.Series(bundle.Series{Labels: labels, Series: bandwidth})
		h.w.Histogram(bundle.HistogramSlice{Labels: labels, Total: true, Histogram: metric.Histogram{Metric: m.metric,
			Unit: metric.Nanoseconds, Basis: "lat", From: hourBarrier, To: h.end(), Hist: total}})
		for _, x := range []metric.Scalar{{Metric: iops.Metric, Unit: iops.Unit, Value: m.perSecond},
			{Metric: bandwidth.Metric, Unit: bandwidth.Unit, Value: 4096 * m.perSecond}} {
			h.w.Scalar(bundle.Scalar{Labels: labels, Scalar: x})
		}
	}
	h.w.Ended(op.InstanceEnd{Instance: name, At: h.end(), OK: true, Containers: []op.ContainerEnd{{Name: "db"}}})
}
