package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const canaryInterval = 10 * time.Millisecond // as in the quick start

// fio compares fio on one mounted file system: run directly, through CNSBench, and through CNSBench
// beside a canary, with runner and agent running and stopped.
func fio(ctx context.Context, e *env) (table, error) {
	var t table
	if os.Geteuid() != 0 {
		return t, fmt.Errorf("loopfile needs root")
	}
	if err := t.fioOn(ctx, e, "disk", 0.05, 2*e.blocks, filepath.Join(e.storage, "fio")); err != nil {
		return t, err
	}
	memory := filepath.Join(e.tmp, "tmpfs")
	if err := os.Mkdir(memory, 0o755); err != nil {
		return t, err
	}
	if err := unix.Mount("tmpfs", memory, "tmpfs", 0, "size=3g"); err != nil {
		return t, fmt.Errorf("mount tmpfs: %w", err)
	}
	err := t.fioOn(ctx, e, "tmpfs", 0.02, 5*e.blocks, filepath.Join(memory, "fio"))
	return t, errors.Join(err, unix.Unmount(memory, 0))
}

// fioOn measures on a volume of a loopfile driver under base, with fio run directly and through
// CNSBench in the same number of blocks of turns.
func (t *table) fioOn(ctx context.Context, e *env, medium string, margin float64, blocks int, base string) (err error) {
	d, err := e.startDriver(ctx, "loopfile", base, "--pool-size", "2Gi")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop(ctx)) }()
	mount, release, err := mountVolume(ctx, d, filepath.Join(d.dir, "stage"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	socket := filepath.Join(d.dir, "fixed.sock")
	stop, err := serveFixed(ctx, mount, socket)
	if err != nil {
		return err
	}
	defer stop()
	turns, err := e.turns(ctx, socket, mount, blocks)
	if err != nil {
		return err
	}
	observed, err := e.observed(ctx, socket, blocks)
	if err != nil {
		return err
	}
	return t.compareFio(medium, margin, turns, observed)
}

// compareFio adds the overhead of CNSBench (turns: direct, through CNSBench) and the effect of the
// canary (observed: with runner and agent stopped, running).
func (t *table) compareFio(medium string, margin float64, turns, observed [][]float64) error {
	overhead, err := pairedRatio(turns[0], turns[1])
	if err != nil {
		return err
	}
	canary, err := pairedRatio(observed[0], observed[1])
	if err != nil {
		return err
	}
	n := len(turns[0])
	t.add(medium+": IOPS through CNSBench / by hand", overhead.String(),
		fmt.Sprintf("90 %% interval within ± %g %%", 100*margin), metIf(overhead.within(margin)), n)
	for i, name := range []string{"by hand", "through CNSBench"} {
		low, high := extremes(turns[i])
		t.info(n, medium+": IOPS "+name, "%.0f to %.0f", low, high)
	}
	t.add(fmt.Sprintf("%s: IOPS beside a canary each %v / while runner and agent are stopped", medium, canaryInterval),
		canary.String(), "90 % interval within ± 5 %", metIf(canary.within(0.05)), len(observed[0]))
	return nil
}

// arm is one of the alternatives that are compared.
type arm struct {
	name string
	do   func() (float64, error)
}

// interleave runs the arms in the given orders. The first block also runs once before as a warm-up,
// whose values are discarded.
func interleave(ctx context.Context, arms []arm, orders [][]int) ([][]float64, error) {
	values := make([][]float64, len(arms))
	for block, order := range append([][]int{orders[0]}, orders...) {
		for _, i := range order {
			v, err := arms[i].do()
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arms[i].name, err)
			}
			if block > 0 {
				values[i] = append(values[i], v)
			}
			fmt.Fprintf(os.Stderr, "  block %d of %d, %s: %.0f/s\n", block, len(orders), arms[i].name, v)
		}
	}
	return values, nil
}

func extremes(v []float64) (low, high float64) {
	low, high = v[0], v[0]
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	return low, high
}

// mountVolume gets one volume from the driver, stages it and returns its mount point. release
// unstages it.
func mountVolume(ctx context.Context, d *driver, path string) (mount string, release func() error, err error) {
	conn, err := grpc.NewClient("unix://"+d.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", nil, err
	}
	controller, node := csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	capability := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	info, err := node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return "", nil, errors.Join(err, conn.Close())
	}
	made, err := controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "bench",
		VolumeCapabilities: []*csi.VolumeCapability{capability},
		CapacityRange:      &csi.CapacityRange{RequiredBytes: 1 << 30}})
	if err != nil {
		return "", nil, errors.Join(err, conn.Close())
	}
	id := made.GetVolume().GetVolumeId()
	published, err := controller.ControllerPublishVolume(ctx,
		&csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: info.GetNodeId(), VolumeCapability: capability})
	if err == nil {
		err = os.MkdirAll(path, 0o755)
	}
	if err == nil {
		_, err = node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: path,
			VolumeCapability: capability, PublishContext: published.GetPublishContext()})
	}
	if err != nil {
		return "", nil, errors.Join(err, conn.Close())
	}
	return path, func() error {
		ctx := context.WithoutCancel(ctx)
		_, err := node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: path})
		return errors.Join(err, conn.Close())
	}, nil
}

// fioBenchmark returns a Benchmark that runs the library's fio once with another runtime. The
// volume is larger than the requested size, so the file always has the same size.
func (e *env) fioBenchmark(seconds int, canary string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-fio}
spec:
  seed: %d
  actions:
    - name: fio
      createObjSpec:
        workload: fio
        vars: {storageClass: fixed, volumeSize: 512Mi, runtime: %d}
        %s
`, e.seed, seconds, canary)
}

// rendered returns commands that do the same as the workload's containers. It writes the files that
// `cnsbench validate --render` prints to dir and returns the commands of the containers in order, with paths
// of this host.
func (e *env) rendered(ctx context.Context, benchmark, socket, dir string,
	paths *strings.Replacer) (commands [][]string, err error) {
	file := filepath.Join(e.tmp, "benchmark.yaml")
	if err := os.WriteFile(file, []byte(benchmark), 0o644); err != nil {
		return nil, err
	}
	text, err := exec.CommandContext(ctx, e.cnsbench(), "validate", "--render", file, "--csi-endpoint", socket).Output()
	if err != nil {
		return nil, fmt.Errorf("cnsbench validate --render: %w", err)
	}
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "ConfigMap":
			var c corev1.ConfigMap
			if err := yaml.Unmarshal(doc, &c); err != nil {
				return nil, err
			}
			for name, text := range c.Data {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(paths.Replace(text)), 0o644); err != nil {
					return nil, err
				}
			}
		case "Pod":
			var p corev1.Pod
			if err := yaml.Unmarshal(doc, &p); err != nil {
				return nil, err
			}
			for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
				words := append(c.Command, c.Args...)
				for i, w := range words {
					if i > 0 { // the program itself is the host's
						words[i] = paths.Replace(w)
					}
				}
				commands = append(commands, words)
			}
		}
	}
	if len(commands) != 2 {
		return nil, fmt.Errorf("the library's fio has %d containers; this bench knows two", len(commands))
	}
	return commands, nil
}
