package local

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cnsbench/cnsbench/internal/op"
)

// statsTimeout bounds one call of NodeGetVolumeStats.
const statsTimeout = 5 * time.Second

// followVolumes asks each driver for the statistics of its volumes in use at each interval of the level detailed,
// until Teardown. The volumes of one driver are asked for one after another.
func (e *Engine) followVolumes() {
	e.sampleLevel.Store(&e.session.Sampling.Level)
	if e.session.Sampling.Level != op.SampleDetailed || e.session.Sampling.Interval <= 0 {
		return
	}
	ctx, stop := context.WithCancel(e.ctx)
	e.stopStats = stop
	for _, d := range e.drivers {
		e.following.Go(func() { d.followVolumes(ctx) })
	}
}

// endFollowing ends the readings of volumes, and calls in flight.
func (e *Engine) endFollowing() {
	if e.stopStats != nil {
		e.stopStats()
		e.following.Wait()
	}
}

func (d *driver) followVolumes(ctx context.Context) {
	e := d.engine
	if !d.nodeCaps[csi.NodeServiceCapability_RPC_GET_VOLUME_STATS] {
		e.session.Sink.Volume(op.VolumeReading{Driver: d.info.GetName(), At: e.session.Clock.Now(),
			Problem: "Unimplemented", Message: "the driver lacks the node capability GET_VOLUME_STATS"})
		return
	}
	usage := processUsage(d.processes())
	tick := time.NewTicker(e.session.Sampling.Interval)
	defer tick.Stop()
	for {
		if *e.sampleLevel.Load() == op.SampleDetailed {
			d.readVolumes(ctx, usage)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// processes returns the PIDs whose CPU time the calls cost: this process and the driver's, if it is known.
func (d *driver) processes() []int {
	own := []int{unix.Getpid()}
	if d.process != nil {
		return append(own, d.process.Pid)
	}
	return append(own, d.engine.Processes()...)
}

// processUsage returns a function that returns the CPU time of processes so far. Ended ones have none.
func processUsage(pids []int) func() int64 {
	return func() (nanos int64) {
		for _, pid := range pids {
			const cpuClock = 2 // CPUCLOCK_SCHED, the clock of a process: clock_getcpuclockid(3)
			var ts unix.Timespec
			if unix.ClockGettime(int32(^pid<<3|cpuClock), &ts) == nil {
				nanos += ts.Nano()
			}
		}
		return nanos
	}
}

// readVolumes asks for each volume in use, except while an op attaches, detaches or grows it.
func (d *driver) readVolumes(ctx context.Context, usage func() int64) {
	d.engine.mu.Lock()
	volumes := maps.Clone(d.engine.volumes)
	d.engine.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		v := volumes[name]
		if v.driver != d || !v.is(&v.published) {
			continue
		}
		_, done, err := v.stats.start(ctx, name)
		if err != nil {
			continue
		}
		before := usage()
		r := v.readStats(ctx)
		d.statsNanos += max(0, usage()-before)
		done()
		if ctx.Err() != nil {
			return
		}
		r.SamplerNanos = d.statsNanos
		d.engine.session.Sink.Volume(r)
	}
}

// readStats asks the driver for the statistics of a published volume.
func (v *volume) readStats(ctx context.Context) op.VolumeReading {
	d, clock := v.driver, v.driver.engine.session.Clock
	req := &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: v.targetPath}
	if v.is(&v.staged) {
		req.StagingTargetPath = v.stagePath
	}
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	began := clock.Now()
	res, err := d.nodeClient.NodeGetVolumeStats(ctx, req)
	half := (clock.Now() - began) / 2
	r := op.VolumeReading{Volume: v.object.Name, Driver: d.info.GetName(), At: began + half, WithinNanos: int64(half)}
	if err != nil {
		r.Problem, r.Message = status.Code(err).String(), err.Error()
		return r
	}
	for _, u := range res.GetUsage() {
		amount := &op.VolumeAmount{Total: u.GetTotal(), Used: u.GetUsed(), Available: u.GetAvailable()}
		switch u.GetUnit() {
		case csi.VolumeUsage_BYTES:
			r.Bytes = amount
		case csi.VolumeUsage_INODES:
			r.Inodes = amount
		}
	}
	r.Abnormal, r.Message = volumeCondition(res.ProtoReflect().GetUnknown())
	return r
}

// volumeCondition decodes volume_condition of NodeGetVolumeStatsResponse, which CSI has until 1.12 and drivers still
// send; nil: the driver did not send it.
func volumeCondition(unknown []byte) (abnormal *bool, message string) {
	for part, text := range protoFields(unknown) {
		if part != 2 {
			continue
		}
		abnormal = new(bool)
		for part, value := range protoFields(text) {
			switch part {
			case 1:
				n, _ := protowire.ConsumeVarint(value)
				*abnormal = n != 0
			case 2:
				message = string(value)
			}
		}
	}
	return abnormal, message
}

// protoFields yields the fields of an encoded message: the bytes of a string or message, or an encoded number.
func protoFields(b []byte) iter.Seq2[protowire.Number, []byte] {
	return func(yield func(protowire.Number, []byte) bool) {
		for len(b) > 0 {
			number, kind, tag := protowire.ConsumeTag(b)
			if tag < 0 {
				return
			}
			size := protowire.ConsumeFieldValue(number, kind, b[tag:])
			if size < 0 {
				return
			}
			value := b[tag : tag+size]
			if kind == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
			if !yield(number, value) {
				return
			}
			b = b[tag+size:]
		}
	}
}

// endStats ends the readings of a volume before a call for it at the node, since a driver may refuse a second call for
// one volume. A call in flight is awaited; the op then has NodeGetVolumeStats as a part.
func (v *volume) endStats(ctx context.Context) {
	t, traced := ctx.Value(opTraceKey{}).(opTrace)
	if !traced {
		v.stats.shut(ctx)
		return
	}
	clock := v.driver.engine.session.Clock
	began := clock.Now()
	if v.stats.shut(ctx) {
		t.trace.MarkAt("NodeGetVolumeStats.start"+t.suffix, began, 0, "csi")
		t.trace.MarkAt("NodeGetVolumeStats.end"+t.suffix, clock.Now(), 0, "csi")
	}
}
