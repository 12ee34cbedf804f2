package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
)

const (
	closedParallel = 8
	closedWarmUp   = time.Second
)

// creating is what a client did that created things: how many per second, and its CPU time for each in seconds.
type creating struct{ perSecond, cpu float64 }

func rateOf(c creating) float64 { return c.perSecond }

// closed creates volumes on null as fast as possible with a fixed number in flight, through
// CNSBench and with direct calls. Each run has a new driver process with the same settings.
func closed(ctx context.Context, e *env, t *table) error {
	length := pick(e, 5*time.Second, 3*time.Second)
	arms := []arm[creating]{
		{"bare gRPC", func(ctx context.Context) (creating, error) { return e.bareCreations(ctx, length) }},
		{"CNSBench", func(ctx context.Context) (creating, error) {
			trial, err := e.run(ctx, e.closedBenchmark(length))
			if err != nil {
				return creating{}, err
			}
			defer trial.remove()
			return closedFigures(trial, length)
		}},
	}
	got, err := interleave(ctx, e, 12, arms...)
	if err != nil {
		return err
	}
	for i, a := range arms {
		t.info(len(got[i]), "volumes/s, "+a.name, "%s", spread("%.0f", each(got[i], rateOf)))
		t.info(len(got[i]), "CPU of the client per volume in µs, "+a.name, "%s", spread("%.1f", each(got[i],
			func(c creating) float64 { return 1e6 * c.cpu })))
	}
	return t.ratio("volumes/s, CNSBench / bare gRPC loop", each(got[0], rateOf), each(got[1], rateOf), 0.8, 0)
}

// closedBenchmark is a closed loop of creations.
func (e *env) closedBenchmark(length time.Duration) string {
	return e.benchmark(`  runtime: %v
  actions: [{name: create, rateName: loop, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}]
  rates: [{name: loop, concurrencySpec: {parallelism: %d, until: running}}]
`, length, closedParallel)
}

// closedFigures are those of a run of closedBenchmark after its first second.
func closedFigures(trial *trial, length time.Duration) (creating, error) {
	ops, err := trial.ops("create")
	if err != nil {
		return creating{}, err
	}
	from, to, n := trial.barrier().Add(closedWarmUp), trial.barrier().Add(length), 0
	for _, o := range ops {
		if at := trial.at(o.Ended); !at.Before(from) && at.Before(to) {
			n++
		}
	}
	perSecond := float64(n) / to.Sub(from).Seconds()
	return creating{perSecond, trial.cpus(from, to) / perSecond}, nil
}

// bareCreations calls CreateVolume with the same number of goroutines on one connection, as the
// local engine does.
func (e *env) bareCreations(ctx context.Context, length time.Duration) (c creating, err error) {
	dir, err := os.MkdirTemp("", "cnsbench-bench-") // a path short enough for a socket
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	socket := filepath.Join(dir, "csi.sock")
	stop, err := e.background(ctx, nil, func() bool { _, err := os.Stat(socket); return err == nil }, "csi", "driver",
		"--backend", "null", "--base-dir", dir, "--socket", socket, "--truth-log", filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return c, err
	}
	defer conn.Close()
	controller := csi.NewControllerClient(conn)
	before, start := loadgen.UsageNow().CPU, time.Now()
	var total, counted atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for i := range closedParallel {
		g.Go(func() error {
			for k := 0; ; k++ {
				if _, err := controller.CreateVolume(ctx, createRequest(fmt.Sprintf("bench-%d-%d", i, k))); err != nil {
					return err
				}
				now := time.Since(start)
				if now >= length {
					return nil
				}
				total.Add(1)
				if now >= closedWarmUp {
					counted.Add(1)
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return c, err
	}
	used := loadgen.UsageNow().CPU - before
	return creating{perSecond: float64(counted.Load()) / (length - closedWarmUp).Seconds(),
		cpu: used.Seconds() / float64(total.Load())}, nil
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
