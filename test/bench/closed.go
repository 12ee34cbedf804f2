package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

const (
	closedParallel = 8
	closedWarmUp   = time.Second
)

// closed creates volumes on null as fast as possible with a fixed number in flight, through
// CNSBench and with direct calls. Each run has a new driver process with the same settings.
func closed(ctx context.Context, e *env) (table, error) {
	var t table
	length := pick(e, 5*time.Second, 3*time.Second)
	var cost [2][]float64 // CPU time of the client per volume, ns
	arms := []arm{
		{"bare gRPC", func() (float64, error) { return costing(&cost[0])(e.bareCreations(ctx, length)) }},
		{"CNSBench", func() (float64, error) { return costing(&cost[1])(e.closedLoop(ctx, length)) }},
	}
	perSecond, err := interleave(ctx, arms, mirrored(len(arms), max(e.blocks, 6), e.seed))
	if err != nil {
		return t, err
	}
	r, err := pairedRatio(perSecond[0], perSecond[1])
	if err != nil {
		return t, err
	}
	n := len(perSecond[0])
	t.add("volumes/s, CNSBench / bare gRPC loop", fmt.Sprintf("%.3f [%.3f, %.3f]", r.estimate, r.low, r.high),
		"90 % interval ≥ 0.8", metIf(r.low >= 0.8), n)
	for i, a := range arms {
		low, high := extremes(perSecond[i])
		t.info(n, "volumes/s, "+a.name, "%.0f to %.0f", low, high)
		slices.Sort(cost[i])
		t.info(n, "CPU of the client per volume, "+a.name, "%.1f µs", stats.Median(cost[i])/1e3)
	}
	return t, nil
}

// creating is the result of one arm: volumes per second and the client's CPU time per volume.
type creating struct {
	perSecond float64
	cpu       time.Duration
}

// costing appends the costs to costs and returns the rate.
func costing(costs *[]float64) func(creating, error) (float64, error) {
	return func(c creating, err error) (float64, error) {
		*costs = append(*costs, float64(c.cpu))
		return c.perSecond, err
	}
}

// closedLoop returns the volumes per second of a run after its first second.
func (e *env) closedLoop(ctx context.Context, length time.Duration) (creating, error) {
	trial, err := e.run(ctx, e.closedBenchmark(length))
	if err != nil {
		return creating{}, err
	}
	defer trial.remove()
	return closedFigures(trial, length)
}

// closedBenchmark is a closed loop of creations.
func (e *env) closedBenchmark(length time.Duration) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-closed}
spec:
  seed: %d
  runtime: %v
  actions:
    - name: create
      rateName: loop
      createObjSpec: {volume: {storageClass: "null", size: 1Gi}}
  rates:
    - {name: loop, concurrencySpec: {parallelism: %d, until: running}}
`, e.seed, length, closedParallel)
}

// closedFigures are those of a run of closedBenchmark after its first second.
func closedFigures(trial *trial, length time.Duration) (creating, error) {
	ops, err := trial.ops("create")
	if err != nil {
		return creating{}, err
	}
	from, to := trial.bundle.Run.BarrierAt+op.Time(closedWarmUp), trial.bundle.Run.BarrierAt+op.Time(length)
	n := 0
	for _, o := range ops {
		if o.Ended >= from && o.Ended < to {
			n++
		}
	}
	perSecond := float64(n) / time.Duration(to-from).Seconds()
	return creating{perSecond, time.Duration(cpuWhile(trial, from, to) / perSecond * 1e9)}, nil
}

// bareCreations calls CreateVolume with the same number of goroutines on one connection, as the
// local engine does.
func (e *env) bareCreations(ctx context.Context, length time.Duration) (c creating, err error) {
	d, err := e.startDriver(ctx, "null", filepath.Join(e.tmp, "null"))
	if err != nil {
		return creating{}, err
	}
	defer func() { err = errors.Join(err, d.stop(ctx)) }()
	conn, err := grpc.NewClient("unix://"+d.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return creating{}, err
	}
	defer conn.Close()
	controller := csi.NewControllerClient(conn)
	before, start := ownCPU(), time.Now()
	var mu sync.Mutex
	total, counted := 0, 0
	g, ctx := errgroup.WithContext(ctx)
	for i := range closedParallel {
		g.Go(func() error {
			n := 0
			for k := 0; ; k++ {
				_, err := controller.CreateVolume(ctx, createRequest(fmt.Sprintf("bench-%d-%d", i, k)))
				if err != nil {
					return err
				}
				now := time.Since(start)
				if now >= length {
					mu.Lock()
					defer mu.Unlock()
					total, counted = total+k, counted+n
					return nil
				}
				if now >= closedWarmUp {
					n++
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return creating{}, err
	}
	return creating{float64(counted) / (length - closedWarmUp).Seconds(),
		(ownCPU() - before) / time.Duration(max(1, total))}, nil
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// createRequest returns the request that corresponds to the closed loop's file.
func createRequest(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	}
}
