// Package core has what the parts of the Kubernetes engine share: one run's client,
// identity, session and ledger, and the proof that an object belongs to the run.
package core

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Run is one run on a cluster: its options, identity and session, and the client.
type Run struct {
	Options
	Session              engine.Session
	ID                   owned.Identity
	Executing            bool            // false: another process cleans up after the run
	ByLabel              bool            // the user names the run: its label and names prove ownership
	Annotating           sync.WaitGroup  // markRetained in the background
	Ctx                  context.Context // of the run, without its cancellation
	Client               *api.Client
	Classes              map[string]storagev1.StorageClass
	Drivers              map[string]storagev1.CSIDriver
	mu                   sync.Mutex
	GroupSnapshotVersion string // of VolumeGroupSnapshots; empty: not served
}

func New(o Options) *Run {
	return &Run{Options: o, ID: o.Identity, Session: engine.Session{RunID: o.Identity.RunID}}
}

// Options say which cluster, and how its pods reach the runner.
type Options struct {
	Config    *rest.Config
	Namespace string
	// Listen is where agents are listened for, "HOST:PORT"; empty: any port of
	// all addresses.
	Listen string
	// Advertise is the host that pods dial; empty: the address that the route to
	// the API server has.
	Advertise string
	// Image is the product's, for agents and for the pods that hold volumes.
	Image    string
	Delivery podspec.Delivery
	// Proxies are the addresses of CSI proxies to follow, HOST:PORT each, with
	// the token that they have.
	Proxies    []string
	ProxyToken string
	// ProxyNamespace is where installed CSI proxies are looked for if Proxies is
	// empty; empty: nowhere.
	ProxyNamespace string
	// Concurrent lets the run go on although another one uses the same driver;
	// both records say so.
	Concurrent bool
	// Metrics are further places with metrics of controllers, URL or NAME=URL.
	Metrics []string
	// Identity is that of a dead run, for Teardown of an engine that is not opened.
	Identity owned.Identity
	// Server is the address that the cluster had for a dead run; empty: Config's.
	Server string
}

// metadata names and labels the objects of the run.
func (r *Run) Metadata() names.Metadata {
	return names.Metadata{RunID: r.Session.RunID, Proof: r.ID.Proof(), Namespace: r.Namespace}
}

func (r *Run) Name(object string) string {
	return names.Metadata{RunID: r.Session.RunID}.Name(object)
}

func (r *Run) Labels(given map[string]string, action, object string) map[string]string {
	return r.Metadata().Labels(given, action, object)
}

func (r *Run) Meta(given metav1.ObjectMeta, action, object string) metav1.ObjectMeta {
	return r.Metadata().Object(given, action, object)
}

func (r *Run) Connect(clock op.Clock) error {
	var err error
	r.Client, err = api.New(r.Config, clock)
	return err
}

// attachRequired says whether volumes of a driver get a VolumeAttachment.
func (r *Run) AttachRequired(driver string) bool {
	d, ok := r.Drivers[driver]
	return !ok || d.Spec.AttachRequired == nil || *d.Spec.AttachRequired
}

// connected makes the client of an engine that was not opened.
func (r *Run) EnsureClient() error {
	if r.Client != nil {
		return nil
	}
	return r.Connect(op.NewClock())
}

// groups is the version in which the cluster serves VolumeGroupSnapshots; empty: it
// does not.
func (r *Run) FindGroupSnapshotVersion(ctx context.Context) string {
	r.mu.Lock()
	version := r.GroupSnapshotVersion
	r.mu.Unlock()
	if version != "" {
		return version
	}
	options := metav1.ListOptions{LabelSelector: r.Selector()}
	for _, v := range []string{"v1", "v1beta2", "v1beta1"} {
		_, _, err := r.Client.List(ctx, api.VolumeGroupSnapshots(v), r.Namespace, options)
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.GroupSnapshotVersion = v
			return v
		}
	}
	return ""
}

func (r *Run) Selector() string { return r.Metadata().Selector() }

func (r *Run) InHurry() bool { return r.Session.Hurry != nil && r.Session.Hurry.Err() != nil }

// driversInUse are those of the classes that the plan names.
func (r *Run) DriversInUse() []string {
	drivers := map[string]bool{}
	for name, sc := range r.Session.StorageClasses {
		drivers[cmp.Or(r.Classes[name].Provisioner, sc.Provisioner)] = true
	}
	for _, d := range r.Session.Needs.Drivers {
		drivers[d] = true
	}
	delete(drivers, "")
	return slices.Sorted(maps.Keys(drivers))
}
