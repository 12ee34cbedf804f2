package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// simulatedPods makes this program simulate the agents of the pods on fake nodes, in place of the benches. It is the
// kubeconfig of the cluster.
const simulatedPods = "CNSBENCH_BENCH_PODS"

// fakePods simulates what happens in pods on fake nodes: as a kubelet does, it starts the containers of a pod, here
// their agents, when the pod's volumes are attached, ends them when the pod is deleted, and then removes the pod.
type fakePods struct {
	client      kubernetes.Interface
	attachments attachments

	mu      sync.Mutex
	pods    map[types.UID]*fakePod
	tokens  map[string]string // by Secret
	volumes map[string]string // PersistentVolume by claim
}

// fakePod is a pod on a fake node.
type fakePod struct {
	stop       context.CancelFunc // ends its containers
	containers sync.WaitGroup
	removed    bool // or about to be
}

// attachments has the node on which each PersistentVolume is attached.
type attachments struct {
	mu      sync.Mutex
	node    map[string]string
	changed map[string]chan struct{} // closed at the next change
}

func (a *attachments) see(va *storagev1.VolumeAttachment, gone bool) {
	if va.Spec.Source.PersistentVolumeName == nil {
		return
	}
	volume := *va.Spec.Source.PersistentVolumeName
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !gone && va.Status.Attached && va.DeletionTimestamp == nil:
		a.node[volume] = va.Spec.NodeName
	case a.node[volume] == va.Spec.NodeName: // of another node: an earlier attachment
		delete(a.node, volume)
	}
	if c := a.changed[volume]; c != nil {
		close(c)
		delete(a.changed, volume)
	}
}

// wait returns when a volume is attached to a node.
func (a *attachments) wait(ctx context.Context, volume, node string) error {
	for {
		a.mu.Lock()
		if a.node[volume] == node {
			a.mu.Unlock()
			return nil
		}
		c := a.changed[volume]
		if c == nil {
			c = make(chan struct{})
			a.changed[volume] = c
		}
		a.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// asSimulatedPods simulates pods if this process was started for it, and reports whether it was. It ends with its
// standard input.
func asSimulatedPods(ctx context.Context) bool {
	kubeconfig := os.Getenv(simulatedPods)
	if kubeconfig == "" {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is what counts
		cancel()
	}()
	if err := simulatePods(ctx, kubeconfig); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "bench: simulated pods:", err)
		os.Exit(1)
	}
	return true
}

func simulatePods(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	f := &fakePods{client: client, pods: map[types.UID]*fakePod{}, tokens: map[string]string{},
		volumes:     map[string]string{},
		attachments: attachments{node: map[string]string{}, changed: map[string]chan struct{}{}}}
	of := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(scaleNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "cnsbench.dev/run" }))
	all := informers.NewSharedInformerFactory(client, 0)
	err = errors.Join(
		follow(of.Core().V1().Pods().Informer(), func(p *corev1.Pod, gone bool) { f.see(ctx, p, gone) }),
		follow(all.Storage().V1().VolumeAttachments().Informer(), f.attachments.see))
	if err != nil {
		return err
	}
	of.Start(ctx.Done())
	all.Start(ctx.Done())
	<-ctx.Done()
	return nil
}

// follow calls see for each event of a watch; gone is true for a deletion.
func follow[T any](informer cache.SharedIndexInformer, see func(o T, gone bool)) error {
	pass := func(o any, gone bool) {
		if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = unknown.Obj
		}
		see(o.(T), gone)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { pass(o, false) },
		UpdateFunc: func(_, o any) { pass(o, false) },
		DeleteFunc: func(o any) { pass(o, true) },
	})
	return err
}

// see starts the agents of a pod, or ends them.
func (f *fakePods) see(ctx context.Context, p *corev1.Pod, gone bool) {
	if !isFakeNode(p.Spec.NodeName) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	pod := f.pods[p.UID]
	if gone {
		if pod != nil {
			pod.stop()
			delete(f.pods, p.UID)
		}
		return
	}
	if pod == nil {
		pod = f.start(ctx, p)
	}
	if p.DeletionTimestamp == nil || pod.removed {
		return
	}
	pod.stop()
	pod.removed = true
	go func() {
		if err := f.remove(ctx, p, pod); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "bench: simulated pod %s: %v\n", p.Name, err)
		}
	}()
}

// start starts the containers of a pod.
func (f *fakePods) start(ctx context.Context, p *corev1.Pod) *fakePod {
	of, cancel := context.WithCancel(ctx)
	pod := &fakePod{stop: cancel}
	f.pods[p.UID] = pod
	for i := range p.Spec.Containers {
		pod.containers.Go(func() {
			if err := f.runContainer(ctx, of, p, &p.Spec.Containers[i]); err != nil && of.Err() == nil {
				fmt.Fprintf(os.Stderr, "bench: simulated pod %s: %v\n", p.Name, err)
			}
		})
	}
	return pod
}

// remove removes a pod from the API server when its containers have ended, or its grace period has. It names the UID,
// as a kubelet does: a pod of the same name may have been created since.
func (f *fakePods) remove(ctx context.Context, p *corev1.Pod, pod *fakePod) error {
	ended := make(chan struct{})
	go func() {
		pod.containers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Until(p.DeletionTimestamp.Time)):
	case <-ctx.Done():
	}
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(p.UID))
	err := f.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, *now)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone
	}
	return err
}

// runContainer runs the agent of a container until of, its pod's, ends, or the runner ends it.
func (f *fakePods) runContainer(ctx, of context.Context, p *corev1.Pod, c *corev1.Container) error {
	s := &simulated{Instance: p.Name, offset: 0, start: make(chan int64, 1)}
	for _, e := range c.Env {
		value := e.Value
		if ref := e.ValueFrom; ref != nil && ref.SecretKeyRef != nil {
			token, err := f.token(of, ref.SecretKeyRef)
			if err != nil {
				return err
			}
			value = token
		}
		s.Env = append(s.Env, e.Name+"="+value)
	}
	if s.value(protocol.EnvToken) == "" {
		return nil // it has no agent
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		volume, err := f.volume(of, v.PersistentVolumeClaim.ClaimName)
		if err != nil {
			return err
		}
		if err := f.attachments.wait(of, volume, p.Spec.NodeName); err != nil {
			return err
		}
	}
	if err := s.connect(of); err != nil {
		return err
	}
	defer s.conn.Close()
	return s.work(ctx, of)
}

// work is what an agent does from its connection on: the first write, the start of a command that does nothing, and a
// sample each second.
func (s *simulated) work(ctx, of context.Context) error {
	for _, p := range s.welcome.Probes {
		probe := protocol.VolumeProbe{Volume: p.Volume, Write: p.Write, Began: s.now(), At: s.now()}
		if err := s.conn.Write(protocol.Message{VolumeProbe: &probe}); err != nil {
			return err
		}
	}
	err := errors.Join(s.conn.Write(protocol.Message{Ready: &protocol.Stamp{At: s.now()}}),
		s.conn.Write(protocol.Message{Started: &protocol.Stamp{At: s.now()}}))
	if err != nil {
		return err
	}
	ended, stopped := make(chan error, 1), make(chan struct{})
	go func() { ended <- s.read(stopped) }()
	exit := protocol.Exit{Started: true, Signal: int(unix.SIGTERM)}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-stopped:
			over, exit.Ours = true, true
		case <-of.Done(): // the kubelet's SIGTERM
			over = true
		case err := <-ended:
			return fmt.Errorf("the runner has gone: %w", err)
		case <-tick.C:
			if err := s.conn.Write(protocol.Message{Sample: &protocol.Sample{At: s.now()}}); err != nil {
				return err
			}
		}
	}
	exit.At = s.now()
	if err := s.conn.Write(protocol.Message{Exit: &exit}); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// token returns the token of an agent, which its incarnations share.
func (f *fakePods) token(ctx context.Context, ref *corev1.SecretKeySelector) (string, error) {
	return remembered(&f.mu, f.tokens, ref.Name+"/"+ref.Key, func() (string, error) {
		secret, err := f.client.CoreV1().Secrets(scaleNamespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return string(secret.Data[ref.Key]), nil
	})
}

// volume returns the PersistentVolume of a claim, which is bound before a pod with it has a node.
func (f *fakePods) volume(ctx context.Context, claim string) (string, error) {
	return remembered(&f.mu, f.volumes, claim, func() (string, error) {
		c, err := f.client.CoreV1().PersistentVolumeClaims(scaleNamespace).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return c.Spec.VolumeName, nil
	})
}

func remembered(mu *sync.Mutex, known map[string]string, key string, read func() (string, error)) (string, error) {
	mu.Lock()
	value, ok := known[key]
	mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := read()
	if err == nil {
		mu.Lock()
		known[key] = value
		mu.Unlock()
	}
	return value, err
}
