// Package listen runs upstream's listeners of COSI: it watches the kinds that they are for, and gives them each change.
// It stands in for upstream's package internal/runtime, which no published module has, with its queue's limits: 40
// workers, and after a failure a wait from 100 ms that doubles up to 30 s. There is no leader election.
package listen

import (
	"context"
	"flag"
	"fmt"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/consts"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/v1alpha1"
	cosi "sigs.k8s.io/container-object-storage-interface/client/clientset/versioned"
	"sigs.k8s.io/container-object-storage-interface/client/clientset/versioned/scheme"
)

const (
	workers   = 40
	firstWait = 100 * time.Millisecond
	lastWait  = 30 * time.Second
	resync    = 30 * time.Second
	// deletions is how often the end of an object is told again. Upstream's queue has no limit, and asks forever for
	// a claim that went before its bucket.
	deletions = 5
)

// Listener is what upstream's listeners are.
type Listener[T any] interface {
	Add(context.Context, T) error
	Update(ctx context.Context, old, changed T) error
	Delete(context.Context, T) error
	InitializeKubeClient(kubernetes.Interface)
	InitializeBucketClient(cosi.Interface)
	InitializeEventRecorder(record.EventRecorder)
}

// Flags are those of both programs.
type Flags struct {
	kubeconfig string
	qps        float64
	burst      int
}

// Parse adds the flags to the command line, and parses it. The context ends with SIGINT and SIGTERM.
func (f *Flags) Parse() context.Context {
	klog.InitFlags(nil)
	flag.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the cluster")
	flag.Float64Var(&f.qps, "kube-api-qps", 5, "requests to the API a second; the default is upstream's, without a flag")
	flag.IntVar(&f.burst, "kube-api-burst", 10, "requests to the API at once; the default is upstream's")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// Loop is a connection to a cluster.
type Loop struct {
	kube     kubernetes.Interface
	buckets  cosi.Interface
	recorder record.EventRecorder
	running  sync.WaitGroup
}

// New connects; component is named in Events.
func New(f Flags, component string) (*Loop, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = float32(f.qps), f.burst
	l := &Loop{}
	if l.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if l.buckets, err = cosi.NewForConfig(config); err != nil {
		return nil, err
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: l.kube.CoreV1().Events("")})
	l.recorder = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	return l, nil
}

// change is the latest of an object: old without changed is its end, changed without old its beginning.
type change[T any] struct{ old, changed *T }

// Watch gives the changes of all objects of a resource to a listener, one at a time for each object, until the
// context ends; see Wait.
func Watch[T runtime.Object](ctx context.Context, l *Loop, resource string, kind T, to Listener[T]) error {
	to.InitializeKubeClient(l.kube)
	to.InitializeBucketClient(l.buckets)
	to.InitializeEventRecorder(l.recorder)
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstWait, lastWait))
	var (
		mu     sync.Mutex
		latest = map[string]change[T]{}
	)
	tell := func(o any, c change[T]) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
		if err != nil {
			klog.ErrorS(err, "object without a name", "resource", resource)
			return
		}
		mu.Lock()
		latest[key] = c
		mu.Unlock()
		queue.Add(key)
	}
	informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(
		l.buckets.ObjectstorageV1alpha1().RESTClient(), resource, "", fields.Everything()), kind, resync, cache.Indexers{})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { changed := o.(T); tell(o, change[T]{changed: &changed}) },
		UpdateFunc: func(was, o any) {
			old, changed := was.(T), o.(T)
			tell(o, change[T]{old: &old, changed: &changed})
		},
		DeleteFunc: func(o any) {
			last := o
			if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
				last = t.Obj
			}
			if old, ok := last.(T); ok {
				tell(o, change[T]{old: &old})
			}
		},
	}); err != nil {
		return err
	}
	next := func() bool {
		key, end := queue.Get()
		if end {
			return false
		}
		defer queue.Done(key)
		mu.Lock()
		c := latest[key]
		mu.Unlock()
		var err error
		switch {
		case c.changed == nil && c.old == nil:
		case c.changed == nil:
			err = to.Delete(ctx, *c.old)
		case c.old == nil:
			err = to.Add(ctx, *c.changed)
		default:
			err = to.Update(ctx, *c.old, *c.changed)
		}
		if err == nil || c.changed == nil && queue.NumRequeues(key) >= deletions {
			queue.Forget(key)
			mu.Lock()
			if latest[key] == c {
				delete(latest, key)
			}
			mu.Unlock()
			return true
		}
		klog.ErrorS(err, "again later", "resource", resource, "object", key)
		queue.AddRateLimited(key)
		return true
	}
	l.running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the list of %s did not come", resource)
	}
	for range workers {
		l.running.Go(func() {
			for next() {
			}
		})
	}
	context.AfterFunc(ctx, queue.ShutDown)
	return nil
}

// Wait returns when the context of all Watch has ended and what they had begun is done.
func (l *Loop) Wait() { l.running.Wait() }

// Written reports whether the controller has written a claim to the end: its Bucket's name, and last its finalizer.
func Written(c *v1alpha1.BucketClaim) bool {
	return c.Status.BucketName != "" && slices.Contains(c.Finalizers, consts.BCFinalizer)
}
