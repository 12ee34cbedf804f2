package local

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// statsNode answers NodeGetVolumeStats after a delay.
type statsNode struct {
	csi.NodeClient
	delay  time.Duration
	answer *csi.NodeGetVolumeStatsResponse
	err    error
	asked  []string
}

func (n *statsNode) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest,
	_ ...grpc.CallOption) (*csi.NodeGetVolumeStatsResponse, error) {
	n.asked = append(n.asked, r.GetVolumeId())
	select {
	case <-time.After(n.delay):
		return n.answer, n.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// readings collects what a driver reported.
type readings struct {
	engine.DiscardSink
	list []op.VolumeReading
}

func (r *readings) Volume(v op.VolumeReading) { r.list = append(r.list, v) }

// statsEngine is an engine with one driver and one published volume.
func statsEngine(node *statsNode) (*Engine, *volume, *readings) {
	sink := &readings{}
	e := &Engine{ctx: context.Background(), session: engine.Session{Clock: op.NewClock(), Sink: sink,
		Sampling: op.Sampling{Level: op.SampleDetailed, Interval: time.Second}}}
	d := &driver{engine: e, nodeClient: node, info: &csi.GetPluginInfoResponse{Name: "a.example"},
		nodeCaps: map[csi.NodeServiceCapability_RPC_Type]bool{csi.NodeServiceCapability_RPC_GET_VOLUME_STATS: true}}
	v := &volume{driver: d, id: "id-1", targetPath: "/v/mount", published: true, object: engine.Object{Name: "v"}}
	e.drivers, e.volumes = map[string]*driver{"a": d}, map[string]*volume{"v": v}
	return e, v, sink
}

// conditionOf is volume_condition as drivers of CSI 1.12 and before send it.
func conditionOf(abnormal uint64, message string) []byte {
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), abnormal)
	inner = protowire.AppendString(protowire.AppendTag(inner, 2, protowire.BytesType), message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), inner)
}

// TestVolumeReadings: an answer, an error and a call without an end are readings with the time of the call.
func TestVolumeReadings(t *testing.T) {
	t.Parallel()
	sick := &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: 100, Used: 30, Available: 60},
		{Unit: csi.VolumeUsage_INODES, Total: 9, Used: 2}}}
	sick.ProtoReflect().SetUnknown(conditionOf(1, "disk is gone"))
	healthy := &csi.NodeGetVolumeStatsResponse{}
	healthy.ProtoReflect().SetUnknown(conditionOf(0, ""))
	yes, no := true, false
	const ms = int64(time.Millisecond)
	for _, tt := range []struct {
		name string
		node *statsNode
		want op.VolumeReading
	}{
		{"abnormal", &statsNode{delay: 4 * time.Millisecond, answer: sick}, op.VolumeReading{At: op.Time(2 * ms),
			WithinNanos: 2 * ms, Bytes: &op.VolumeAmount{Total: 100, Used: 30, Available: 60},
			Inodes: &op.VolumeAmount{Total: 9, Used: 2}, Abnormal: &yes, Message: "disk is gone"}},
		{"healthy, without amounts", &statsNode{answer: healthy}, op.VolumeReading{Abnormal: &no}},
		{"no condition", &statsNode{answer: &csi.NodeGetVolumeStatsResponse{}}, op.VolumeReading{}},
		{"error", &statsNode{err: status.Error(codes.Internal, "no answer of the array")},
			op.VolumeReading{Problem: "Internal", Message: "no answer of the array"}},
		{"hangs", &statsNode{delay: time.Hour}, op.VolumeReading{At: op.Time(2500 * ms), WithinNanos: 2500 * ms,
			Problem: "DeadlineExceeded", Message: "context deadline exceeded"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, v, sink := statsEngine(tt.node)
				v.driver.readVolumes(t.Context(), func() int64 { return int64(len(tt.node.asked)) * 7 })
				tt.want.Volume, tt.want.Driver, tt.want.SamplerNanos = "v", "a.example", 7
				ignoreMessage := cmpopts.IgnoreFields(op.VolumeReading{}, "Message")
				if diff := cmp.Diff([]op.VolumeReading{tt.want}, sink.list, ignoreMessage); diff != "" {
					t.Error(diff)
				}
				if tt.want.Abnormal != nil && sink.list[0].Message != tt.want.Message {
					t.Errorf("message %q", sink.list[0].Message)
				}
				e.endFollowing()
			})
		})
	}
}

// TestFollowVolumes: a volume is read at each interval of the level detailed, and not during an op that detaches it,
// which waits for a call in flight and has it as a part.
func TestFollowVolumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := &statsNode{delay: 100 * time.Millisecond, answer: &csi.NodeGetVolumeStatsResponse{}}
		e, v, sink := statsEngine(node)
		e.followVolumes()
		time.Sleep(2050 * time.Millisecond) // in the third call
		trace := op.NewTrace(e.session.Clock)
		v.endStats(withTrace(t.Context(), trace, ""))
		var o op.Op
		trace.Fill(&o)
		want := []op.Milestone{{Name: "NodeGetVolumeStats.start", At: op.Time(2050 * time.Millisecond), Source: "csi"},
			{Name: "NodeGetVolumeStats.end", At: op.Time(2100 * time.Millisecond), Source: "csi"}}
		if diff := cmp.Diff(want, o.Milestones); diff != "" {
			t.Errorf("an op that waits for a reading: %s", diff)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(sink.list) != 3 || len(node.asked) != 3 {
			t.Errorf("%d readings, %d calls, want 3: it is detached", len(sink.list), len(node.asked))
		}
		v.stats.reopen()
		time.Sleep(2100 * time.Millisecond)
		synctest.Wait()
		if len(sink.list) != 5 {
			t.Errorf("%d readings, want 2 more", len(sink.list))
		}
		level := op.SampleBasic
		e.sampleLevel.Store(&level)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(node.asked) != 5 {
			t.Errorf("%d calls after the level went down", len(node.asked)-5)
		}
		e.endFollowing()
	})
}

// TestVolumesNotAsked: a driver without the capability is said once, at another level none is asked.
func TestVolumesNotAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := &statsNode{}
		e, v, sink := statsEngine(node)
		v.driver.nodeCaps = nil
		e.followVolumes()
		time.Sleep(3 * time.Second)
		e.endFollowing()
		if len(node.asked) > 0 || len(sink.list) != 1 || sink.list[0].Problem != "Unimplemented" ||
			sink.list[0].Volume != "" {
			t.Errorf("%d calls, %+v", len(node.asked), sink.list)
		}
		e, _, sink = statsEngine(node)
		e.session.Sampling.Level = op.SampleBasic
		e.followVolumes()
		time.Sleep(3 * time.Second)
		if len(node.asked) > 0 || len(sink.list) > 0 {
			t.Errorf("basic: %d calls, %+v", len(node.asked), sink.list)
		}
	})
}

// TestProcessUsage: the CPU time of this process is known and grows; a process that does not exist has none.
func TestProcessUsage(t *testing.T) {
	t.Parallel()
	usage := processUsage((&driver{engine: &Engine{}}).processes())
	before := usage()
	for began := time.Now(); usage()-before < int64(5*time.Millisecond); {
		if time.Since(began) > time.Minute {
			t.Fatal("no CPU time in a minute")
		}
	}
	if got := processUsage([]int{1 << 22})(); got != 0 {
		t.Errorf("a process that does not exist has used %d ns", got)
	}
}
