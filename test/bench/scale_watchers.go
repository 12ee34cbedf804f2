package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// simulatedWatchers makes this program open the watches of further runners, in place of the benches. It is their number
// and the kubeconfig of the cluster, separated by a space.
const simulatedWatchers = "CNSBENCH_BENCH_WATCHERS"

// asSimulatedWatchers watches as other runners do, if this process was started for it, and reports whether it was.
func asSimulatedWatchers(ctx context.Context) bool {
	number, kubeconfig, ok := strings.Cut(os.Getenv(simulatedWatchers), " ")
	if !ok {
		return false
	}
	n, err := strconv.Atoi(number)
	if err == nil {
		err = simulateWatchers(ctx, n, kubeconfig)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "bench: simulated watchers:", err)
		os.Exit(1)
	}
	return true
}

// simulateWatchers opens the watches that the runner of another run has and that get events of this one: those of all
// PersistentVolumes and VolumeAttachments, and of the Events of its namespace. Each has a connection of its own.
func simulateWatchers(ctx context.Context, n int, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.ContentType, config.DisableCompression = -1, "application/vnd.kubernetes.protobuf", true
	type open func(context.Context, kubernetes.Interface) (apiwatch.Interface, error)
	for range n {
		for _, start := range []open{
			func(ctx context.Context, c kubernetes.Interface) (apiwatch.Interface, error) {
				return c.CoreV1().PersistentVolumes().Watch(ctx, metav1.ListOptions{})
			},
			func(ctx context.Context, c kubernetes.Interface) (apiwatch.Interface, error) {
				return c.StorageV1().VolumeAttachments().Watch(ctx, metav1.ListOptions{})
			},
			func(ctx context.Context, c kubernetes.Interface) (apiwatch.Interface, error) {
				return c.CoreV1().Events(scaleNamespace).Watch(ctx, metav1.ListOptions{})
			},
		} {
			own := *config
			own.Dial = (&net.Dialer{}).DialContext // clients with the same would share a connection
			client, err := kubernetes.NewForConfig(&own)
			if err != nil {
				return err
			}
			go func() {
				for ctx.Err() == nil { // the server ends a watch after some time
					w, err := start(ctx, client)
					if err != nil {
						fmt.Fprintln(os.Stderr, "bench: simulated watcher:", err)
						time.Sleep(time.Second)
						continue
					}
					for range w.ResultChan() {
					}
				}
			}()
		}
	}
	<-ctx.Done()
	return nil
}

// watchers starts that many simulated watchers. They end by stop.
func (f *fakeNodes) watchers(ctx context.Context, n int, kubeconfig string) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd, err := f.background(ctx, fmt.Sprintf("%s=%d %s", simulatedWatchers, n, kubeconfig), self)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it exits by the signal
		return err
	}, nil
}

// scaleWatchers measures what the watches of further runners cost the API server: the same moves without them and with
// them, in mirrored order.
func scaleWatchers(ctx context.Context, e *env) (t table, err error) {
	f, err := e.startFakeNodes(ctx)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.stop(ctx)) }()
	size := scaleSize{nodes: 50, instances: 80, volumes: 80, perSecond: 5, inFlight: 40,
		length: pick(e, 30*time.Second, 10*time.Second)}
	if err := f.grow(ctx, size.nodes); err != nil {
		return t, err
	}
	kubeconfig, _, err := e.testbed()
	if err != nil {
		return t, err
	}
	runners := 20
	var perMove [2]float64
	for _, arm := range pick(e, []int{0, 1, 1, 0}, []int{0, 1}) {
		stop := func() error { return nil }
		if arm == 1 {
			if stop, err = f.watchers(ctx, runners, kubeconfig); err != nil {
				return t, err
			}
		}
		s, err := e.runScale(ctx, f, size)
		if err = errors.Join(err, stop()); s != nil && s.trial != nil {
			s.trial.remove()
		}
		if err != nil {
			return t, err
		}
		p := s.point
		cost := p.Cores["kube-apiserver"] / p.Achieved
		perMove[arm] += cost / float64(pick(e, 2, 1))
		t.info(int(p.Moves), fmt.Sprintf("%d further runners: CPU of kube-apiserver for each move", arm*runners),
			"%.2f ms (%.2f moves per second)", 1000*cost, p.Achieved)
	}
	t.info(2, "CPU of kube-apiserver for the watches of one further runner, for each move", "%.3f ms",
		1000*(perMove[1]-perMove[0])/float64(runners))
	return t, nil
}
