// Command sidecar is upstream's sidecar of a driver of COSI: it gives the driver the Buckets and BucketAccesses of its
// name to make, and writes the Secrets.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/v1alpha1"
	cosiclient "sigs.k8s.io/container-object-storage-interface/client/clientset/versioned"
	cosi "sigs.k8s.io/container-object-storage-interface/proto"
	"sigs.k8s.io/container-object-storage-interface/sidecar/pkg/bucket"
	"sigs.k8s.io/container-object-storage-interface/sidecar/pkg/bucketaccess"
	"sigs.k8s.io/container-object-storage-interface/sidecar/pkg/provisioner"

	"github.com/cnsbench/cnsbench/hack/testbed/build/cosi/listen"
)

func main() {
	var f listen.Flags
	address := flag.String("driver-addr", "unix:///var/lib/cosi/cosi.sock", "the driver's socket")
	ctx := f.Parse()
	if err := run(ctx, f, *address); err != nil {
		klog.ErrorS(err, "ending")
		os.Exit(1)
	}
}

func run(ctx context.Context, f listen.Flags, address string) error {
	driver, err := provisioner.NewDefaultCOSIProvisionerClient(ctx, address, false)
	if err != nil {
		return err
	}
	info, err := driver.DriverGetInfo(ctx, &cosi.DriverGetInfoRequest{})
	if err != nil {
		return err
	}
	l, err := listen.New(f, "cosi-sidecar")
	if err != nil {
		return err
	}
	err = listen.Watch(ctx, l, "buckets", &v1alpha1.Bucket{}, &afterController{
		BucketListener: bucket.NewBucketListener(info.Name, driver)})
	if err != nil {
		return err
	}
	err = listen.Watch(ctx, l, "bucketaccesses", &v1alpha1.BucketAccess{},
		bucketaccess.NewBucketAccessListener(info.Name, driver))
	if err != nil {
		return err
	}
	l.Wait()
	return nil
}

// afterController is upstream's listener, which it gives a new Bucket when the controller has named it in its claim.
// The controller of v0.2.2 writes a claim's status after it has made the Bucket, without regard to what is there: where
// the driver is faster than that, the claim's bucketReady becomes false again and stays so.
type afterController struct {
	*bucket.BucketListener
	claims cosiclient.Interface
}

func (a *afterController) InitializeBucketClient(c cosiclient.Interface) {
	a.claims = c
	a.BucketListener.InitializeBucketClient(c)
}

func (a *afterController) Add(ctx context.Context, b *v1alpha1.Bucket) error {
	if of := b.Spec.BucketClaim; of != nil && b.DeletionTimestamp.IsZero() && !b.Status.BucketReady {
		c, err := a.claims.ObjectstorageV1alpha1().BucketClaims(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !listen.Written(c) {
			return errors.New("the controller has not yet written the claim")
		}
	}
	return a.BucketListener.Add(ctx, b)
}

func (a *afterController) Update(ctx context.Context, old, changed *v1alpha1.Bucket) error {
	if changed.DeletionTimestamp.IsZero() {
		return a.Add(ctx, changed)
	}
	return a.BucketListener.Update(ctx, old, changed)
}
