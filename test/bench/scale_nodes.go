package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	scaleNamespace = "default"
	nullDriver     = "null.csi.cnsbench.dev"
	fakeNodePrefix = "scale-" // after the names of the test bed's own nodes
	fakeNodeLabel  = "type=kwok"
	fakeNodeTaint  = "kwok.x-k8s.io/node"
	// attachesByController is the annotation of a node whose volumes the controller attaches, not its kubelet.
	attachesByController = "volumes.kubernetes.io/controller-managed-attach-detach"
	// fakeNodeAddress has no kubelet: who asks for one is refused at once.
	fakeNodeAddress = "10.99.0.1"
	kwokAddress     = "127.0.0.1:10347"
	nodesWithin     = 5 * time.Minute
)

func isFakeNode(name string) bool { return strings.HasPrefix(name, fakeNodePrefix) }

// fakeNodes are nodes that kwok simulates, and the process that simulates the agents of the pods on them.
type fakeNodes struct {
	client     kubernetes.Interface
	kwok, pods *exec.Cmd
	log        *os.File // of both
	n          int
}

// startFakeNodes starts kwok and the simulation of pods, without nodes.
func (e *env) startFakeNodes(ctx context.Context) (*fakeNodes, error) {
	kubeconfig, _, err := e.testbed()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(e.root, "out", "scale")
	if _, err := os.Stat(filepath.Join(dir, "kwok.yaml")); err != nil {
		return nil, fmt.Errorf("%w; run make fake-nodes first", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	f := &fakeNodes{}
	if f.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if f.log, err = os.Create(filepath.Join(dir, "scale.log")); err != nil {
		return nil, err
	}
	f.kwok, err = f.background(ctx, "", filepath.Join(dir, "kwok"), "--config", filepath.Join(dir, "kwok.yaml"),
		"--kubeconfig", kubeconfig, "--manage-nodes-with-label-selector", fakeNodeLabel,
		"--node-lease-duration-seconds", "40", "--node-ip", fakeNodeAddress, "--server-address", kwokAddress)
	self, other := os.Executable()
	if err = errors.Join(err, other); err == nil {
		f.pods, err = f.background(ctx, simulatedPods+"="+kubeconfig, self)
	}
	if err == nil {
		err = awaitKwok(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.stop(ctx))
	}
	return f, nil
}

// background starts a program that outlives ctx and ends with this one.
func (f *fakeNodes) background(ctx context.Context, variable, name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	cmd.Env = append(os.Environ(), variable)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Stdout, cmd.Stderr = f.log, f.log
	if _, err := cmd.StdinPipe(); err != nil { // its end ends the simulated pods
		return nil, err
	}
	return cmd, cmd.Start()
}

func awaitKwok(ctx context.Context) error {
	var last error
	for range 300 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+kwokAddress+"/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			return nil
		}
		last = err
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("kwok does not answer: %w", last)
}

// grow adds nodes until there are n, all ready.
func (f *fakeNodes) grow(ctx context.Context, n int) error {
	var all errgroup.Group
	all.SetLimit(8)
	for i := f.n; i < n; i++ {
		all.Go(func() error { return f.add(ctx, fmt.Sprintf("%s%04d", fakeNodePrefix, i)) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	f.n = max(f.n, n)
	return f.awaitReady(ctx)
}

// add creates a node and what its kubelet would register: the driver null, whose only node for all of them is one of
// the test bed.
func (f *fakeNodes) add(ctx context.Context, name string) error {
	key, value, _ := strings.Cut(fakeNodeLabel, "=")
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: value, corev1.LabelHostname: name},
			Annotations: map[string]string{attachesByController: "true"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: fakeNodeTaint, Value: "fake",
			Effect: corev1.TaintEffectNoSchedule}}},
	}
	made, err := f.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // of a bench that was killed
		return nil
	}
	if err != nil {
		return err
	}
	of := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: made.UID}
	_, err = f.client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{of}},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: nullDriver, NodeID: "node1"}}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (f *fakeNodes) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nodesWithin)
	defer cancel()
	for {
		list, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: fakeNodeLabel})
		if err != nil {
			return fmt.Errorf("%d fake nodes are not ready in %v: %w", f.n, nodesWithin, err)
		}
		ready := 0
		for i := range list.Items {
			n := &list.Items[i]
			// Until the node lifecycle controller has seen the node ready, it has a taint.
			if len(n.Spec.Taints) == 1 && isReady(n) {
				ready++
			}
		}
		if ready >= f.n {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// stop removes the nodes and ends what simulates them.
func (f *fakeNodes) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := f.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: fakeNodeLabel})
	for _, cmd := range []*exec.Cmd{f.pods, f.kwok} {
		if cmd != nil && cmd.Process != nil {
			err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
			_ = cmd.Wait() // it exits by the signal
		}
	}
	return errors.Join(err, f.log.Close())
}
