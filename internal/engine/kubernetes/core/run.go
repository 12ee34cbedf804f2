// Package core has what the parts of the Kubernetes engine share: one run's client, identity, session and ledger,
// and the proof that an object belongs to the run.
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
	Annotating           sync.WaitGroup  // MarkRetained in the background
	Ctx                  context.Context // of the run, without its cancellation
	Client               *api.Client
	Classes              map[string]storagev1.StorageClass
	Drivers              map[string]storagev1.CSIDriver
	kindsInLedger        sync.Map // kindKey → the data of their entries; their own entry is durable
	mu                   sync.Mutex
	GroupSnapshotVersion string // of VolumeGroupSnapshots; empty: not served
}

// New returns a run that is not connected.
func New(o Options) *Run {
	return &Run{Options: o, ID: o.Identity, Session: engine.Session{RunID: o.Identity.RunID}}
}

// Options say which cluster to use and how its pods reach the runner.
type Options struct {
	Config    *rest.Config
	Namespace string
	// Listen is the address for agents, "HOST:PORT"; empty: any port on all addresses.
	Listen string
	// Advertise is the host that pods dial; empty: the local address of the route to the API server.
	Advertise string
	// Image is the product's image, for agents and for holder pods.
	Image    string
	Delivery podspec.Delivery
	// Proxies are the addresses of CSI proxies, HOST:PORT each; ProxyToken is their token.
	Proxies    []string
	ProxyToken string
	// ProxyNamespace is the namespace of installed CSI proxies, used if Proxies is empty; empty: none.
	ProxyNamespace string
	// Metrics are further metrics endpoints of controllers, URL or NAME=URL.
	Metrics []string
	// PutOnce performs the first PUT of a BucketAccess; nil: not offered.
	PutOnce engine.PutOnce
	// Identity is the identity of an ended run, for Teardown without Open.
	Identity owned.Identity
	// Server is the address that the cluster had for an ended run; empty: Config's.
	Server string
}

// Metadata names and labels the objects of the run.
func (r *Run) Metadata() names.Metadata {
	return names.Metadata{RunID: r.Session.RunID, Proof: r.ID.Proof(), Namespace: r.Namespace}
}

// Name returns the name of an object in the cluster; see names.Metadata.
func (r *Run) Name(object string) string {
	return names.Metadata{RunID: r.Session.RunID}.Name(object)
}

// Labels returns the labels of an object; see names.Metadata.
func (r *Run) Labels(given map[string]string, action string) map[string]string {
	return r.Metadata().Labels(given, action)
}

// Meta returns the metadata of an object; see names.Metadata.
func (r *Run) Meta(given metav1.ObjectMeta, action, object string) metav1.ObjectMeta {
	return r.Metadata().Object(given, action, object)
}

// Connect creates the client.
func (r *Run) Connect(clock op.Clock) error {
	var err error
	r.Client, err = api.New(r.Config, clock)
	return err
}

// AttachRequired says whether volumes of a driver get a VolumeAttachment.
func (r *Run) AttachRequired(driver string) bool {
	d, ok := r.Drivers[driver]
	return !ok || d.Spec.AttachRequired == nil || *d.Spec.AttachRequired
}

// EnsureClient creates the client of an engine that was not opened.
func (r *Run) EnsureClient() error {
	if r.Client != nil {
		return nil
	}
	return r.Connect(op.NewClock())
}

// FindGroupSnapshotVersion returns the version in which the cluster serves VolumeGroupSnapshots; empty: not served.
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

// Selector selects the run's objects.
func (r *Run) Selector() string { return r.Metadata().Selector() }

// InHurry says whether the user wants the run to end at once.
func (r *Run) InHurry() bool { return r.Session.Hurry != nil && r.Session.Hurry.Err() != nil }

// DriversInUse lists the drivers of the classes that the plan names.
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
