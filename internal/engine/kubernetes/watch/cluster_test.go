//go:build e2e

package watch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// cluster is a namespace of our own on a real API server, with watches open and every event kept.
type cluster struct {
	t         *testing.T
	host      *rest.Config
	client    *api.Client
	clock     op.Clock
	watches   *watch.Watches
	namespace string
	class     string // an Immediate class of a driver; empty: none

	mu     sync.Mutex
	events []watch.Event
}

func openCluster(t *testing.T) *cluster {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("KUBECONFIG is not set: no cluster to watch")
	}
	host, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, clock: op.NewClock(), namespace: fmt.Sprintf("watch-test-%d", os.Getpid())}
	if c.client, err = api.New(host, c.clock); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	c.class = c.immediateClass()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	if _, err := c.client.Create(t.Context(), api.Namespaces, "", ns, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.remove)
	c.host = host
	return c
}

func (c *cluster) open(host *rest.Config, kinds ...api.Kind) {
	var sources []watch.Source
	for _, k := range kinds {
		sources = append(sources, watch.Source{Kind: k, Namespace: c.namespace})
	}
	var err error
	c.watches, err = watch.Open(c.t.Context(),
		watch.Config{Host: host, Clock: c.clock, Sources: sources, Handler: func(e watch.Event) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.events = append(c.events, e)
		}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.watches.Close)
	c.client.Seen = c.watches.Wrote
}

// immediateClass prefers the driver that does nothing.
func (c *cluster) immediateClass() string {
	items, _, err := c.client.List(c.t.Context(), api.StorageClasses, "", metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	found := ""
	for _, i := range items {
		s := i.(*storagev1.StorageClass)
		if m := s.VolumeBindingMode; m != nil && *m != storagev1.VolumeBindingImmediate {
			continue
		}
		if null := strings.Contains(s.Provisioner, "null"); null || found == "" {
			found = s.Name
			if null {
				return found
			}
		}
	}
	return found
}

// remove waits until the namespace and the volumes of its claims are gone.
func (c *cluster) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	_, _ = c.client.Delete(ctx, api.Namespaces, "", c.namespace, metav1.DeleteOptions{})
	for ctx.Err() == nil {
		_, err := c.client.Get(ctx, api.Namespaces, "", c.namespace, &corev1.Namespace{})
		volumes := c.volumes(ctx)
		if apierrors.IsNotFound(err) && volumes == 0 {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	c.t.Errorf("namespace %s or its volumes are left", c.namespace)
}

func (c *cluster) volumes(ctx context.Context) int {
	items, _, err := c.client.List(ctx, api.PersistentVolumes, "", metav1.ListOptions{})
	if err != nil {
		return -1
	}
	return len(items) - len(slices.DeleteFunc(items, func(o api.Object) bool {
		ref := o.(*corev1.PersistentVolume).Spec.ClaimRef
		return ref != nil && ref.Namespace == c.namespace
	}))
}

// write makes n claims and config maps at the given rate, and deletes the claims one second later.
func (c *cluster) write(n int, every time.Duration) {
	var writers sync.WaitGroup
	next := time.Now()
	for i := range n {
		time.Sleep(time.Until(next))
		next = next.Add(every)
		writers.Go(func() { c.writeOne(i) })
	}
	writers.Wait()
}

func (c *cluster) writeOne(i int) {
	ctx := c.t.Context()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", i)},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &c.class,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}}}}
	if _, err := c.client.Create(ctx, api.PersistentVolumeClaims, c.namespace, claim, nil); err != nil {
		c.t.Error(err)
	}
	if _, err := c.client.Create(ctx, api.ConfigMaps, c.namespace,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}, nil); err != nil {
		c.t.Error(err)
	}
	time.Sleep(time.Second)
	if _, err := c.client.Delete(ctx, api.PersistentVolumeClaims, c.namespace, claim.Name,
		metav1.DeleteOptions{}); err != nil {
		c.t.Error(err)
	}
}

func TestLagOnACluster(t *testing.T) {
	for _, load := range []struct {
		name  string
		n     int
		every time.Duration
	}{
		{"2 a second", 60, 500 * time.Millisecond},
		{"25 a second", 500, 40 * time.Millisecond},
	} {
		t.Run(load.name, func(t *testing.T) {
			rotation.Turn(t, 1, []string{"2 a second", "25 a second"}, load.name)
			c := openCluster(t)
			c.open(c.host, api.PersistentVolumeClaims, api.ConfigMaps, api.Events, api.Pods, api.PersistentVolumes,
				api.VolumeAttachments, api.Nodes)
			t.Logf("class %q", c.class)
			c.write(load.n, load.every)
			time.Sleep(2 * time.Second) // what is still to come
			sums := c.watches.Lags()
			for _, s := range sums {
				t.Logf("%-24s n %d (%d early, %d unseen) p50 %v p99 %v max %v, borrowed %v; %d events, %d bytes, deepest %d, gaps %d", s.Kind, s.N, s.Early, s.Unseen,
					time.Duration(s.P50), time.Duration(s.P99), time.Duration(s.Max), s.Borrowed, s.Events, s.Bytes, s.Deepest, s.Gaps)
				if s.Unseen > 0 && s.Gaps == 0 {
					t.Errorf("%s: %d own writes have no event, and no gap explains it", s.Kind, s.Unseen)
				}
			}
			for _, g := range c.watches.Gaps() {
				t.Logf("gap of %s, %v to %v (%d attempts): %s", g.Kind, time.Duration(g.From), time.Duration(g.To),
					g.Attempts, g.Cause)
			}
			n := int64(load.n)
			if claims, maps := sums[0].N+sums[0].Unseen, sums[1].N+sums[1].Unseen; claims != 2*n || maps != n {
				t.Errorf("%d writes of claims and %d of config maps are accounted for; want %d and %d", claims, maps,
					2*n, n)
			}
			c.compare(load.every >= 500*time.Millisecond)
		})
	}
}

// cutter dials as usual until it cuts: then connections break and new ones fail.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

func (d *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.cut {
		_ = conn.Close()
		return nil, errors.New("cut")
	}
	d.conns = append(d.conns, conn)
	return conn, err
}

func (d *cutter) set(cut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = cut
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
}

// What happens while the watch is cut off is known to lie in the gap, and what happens later is stamped again.
func TestGapOnACluster(t *testing.T) {
	c := openCluster(t)
	d := &cutter{}
	host := rest.CopyConfig(c.host)
	host.Dial = d.dial
	c.open(host, api.ConfigMaps)
	create := func(name string) api.Call {
		call, err := c.client.Create(t.Context(), api.ConfigMaps, c.namespace,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return call
	}
	create("before")
	c.await("before")
	d.set(true)
	time.Sleep(300 * time.Millisecond)
	inside := create("inside")
	time.Sleep(300 * time.Millisecond)
	d.set(false)
	e := c.await("inside")
	if !e.Interval || e.From > inside.Sent || e.To < inside.Answered || e.Err < int64(e.To-e.From)/2 {
		t.Errorf("written from %d to %d while the watch was cut off, stamped %+v", inside.Sent, inside.Answered, e)
	}
	time.Sleep(time.Second) // for the mark
	after := create("after")
	if e := c.await("after"); e.Interval || e.At < after.Sent {
		t.Errorf("written at %d after the gap, stamped %+v", after.Sent, e)
	}
	gaps := c.watches.Gaps()
	if len(gaps) != 1 || gaps[0].Attempts < 2 || gaps[0].From > inside.Sent || gaps[0].To < inside.Answered {
		t.Errorf("gaps %+v, want one around %d", gaps, inside.Sent)
	}
	t.Logf("%+v", gaps)
}

// await returns the first event of the object with that name.
func (c *cluster) await(name string) watch.Event {
	for range 500 {
		c.mu.Lock()
		i := slices.IndexFunc(c.events, func(e watch.Event) bool { return e.Object.GetName() == name })
		if i >= 0 {
			defer c.mu.Unlock()
			return c.events[i]
		}
		c.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
	c.t.Fatalf("no event of %q in 10 s", name)
	return watch.Event{}
}

// compare holds the stamps against the server's own audit log, which says to the microsecond when each write was
// answered, on this machine's clock.
func (c *cluster) compare(idle bool) {
	path := os.Getenv("CNSBENCH_AUDIT_LOG")
	if path == "" {
		c.t.Log("CNSBENCH_AUDIT_LOG is not set: the stamps are not compared with it")
		return
	}
	answered := c.audited(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	var diffs, signed []time.Duration
	covered, early := 0, 0
	for _, e := range c.events {
		done, ok := answered[e.Kind.String()+"/"+e.Object.GetResourceVersion()]
		if !ok || e.Type == watch.Listed {
			continue
		}
		d := c.clock.At(e.At).Round(0).Sub(done)
		diffs, signed = append(diffs, d.Abs()), append(signed, d)
		if d.Abs() <= time.Duration(e.Err) {
			covered++
		} else {
			if d < 0 {
				early++
			}
			c.t.Logf("%s %s %s: stamped %v after the answer, error said %v", e.Type, e.Kind, e.Object.GetName(), d,
				time.Duration(e.Err))
		}
	}
	if len(diffs) == 0 {
		c.t.Error("the audit log has none of the events seen")
		return
	}
	slices.Sort(diffs)
	slices.Sort(signed)
	wakes := c.watches.Wakes()
	c.t.Logf("before the log's instant (its own writer waited) p1 %v, after it (the event was on its way) p99 %v; this process waited to read %v on average, %+v",
		signed[len(signed)/100], signed[len(signed)*99/100], time.Duration(wakes.SumNs/max(1, wakes.N)), wakes.Buckets)
	p99 := diffs[len(diffs)*99/100]
	c.t.Logf("audit log: %d events, difference p50 %v p99 %v max %v; %d (%.2f %%) within the error; of the others %d came before the log's instant, so that it was the log that was late",
		len(diffs), diffs[len(diffs)/2], p99, diffs[len(diffs)-1], covered, 100*float64(covered)/float64(len(diffs)), early)
	if float64(covered) < 0.99*float64(len(diffs)) {
		c.t.Error("the error covers less than 99 % of the differences")
	}
	switch {
	case !idle || p99 <= 5*time.Millisecond:
	case os.Getenv("CNSBENCH_QUIET") != "":
		c.t.Errorf("p99 of the differences is %v, want at most 5ms", p99)
	default:
		c.t.Log("that is more than 5ms; without CNSBENCH_QUIET the machine may be busy with other work, and it is no failure")
	}
}

// audited gives the time of each answer by kind and the resourceVersion that the write made.
func (c *cluster) audited(path string) map[string]time.Time {
	f, err := os.Open(path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all := map[string]time.Time{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct {
			Stage          string
			StageTimestamp metav1.MicroTime
			ObjectRef      struct{ Resource, APIGroup string }
			ResponseObject struct {
				Kind     string
				Metadata struct{ ResourceVersion string }
			}
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Stage != "ResponseComplete" ||
			e.ResponseObject.Metadata.ResourceVersion == "" {
			continue
		}
		k := api.Kind{Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource}
		key := k.String() + "/" + e.ResponseObject.Metadata.ResourceVersion
		if _, known := all[key]; !known { // a later one changed nothing
			all[key] = e.StageTimestamp.Time
		}
	}
	if err := lines.Err(); err != nil {
		c.t.Fatal(err)
	}
	return all
}
