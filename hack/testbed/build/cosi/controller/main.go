// Command controller is upstream's controller of COSI: for each BucketClaim it makes a Bucket.
package main

import (
	"context"
	"os"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/v1alpha1"
	cosi "sigs.k8s.io/container-object-storage-interface/client/clientset/versioned"
	"sigs.k8s.io/container-object-storage-interface/controller/pkg/bucketclaim"

	"github.com/cnsbench/cnsbench/hack/testbed/build/cosi/listen"
)

func main() {
	var f listen.Flags
	ctx := f.Parse()
	l, err := listen.New(f, "cosi-controller")
	if err == nil {
		err = listen.Watch(ctx, l, "bucketclaims", &v1alpha1.BucketClaim{},
			&once{BucketClaimListener: bucketclaim.NewBucketClaimListener()})
	}
	if err != nil {
		klog.ErrorS(err, "ending")
		os.Exit(1)
	}
	l.Wait()
}

// once is upstream's listener, which is not given a claim that it has written. That of v0.2.2 does such a claim again,
// because of the change that it has itself made; if that change is older than the sidecar's bucketReady, it sets
// bucketReady to false, and nothing sets it to true again.
type once struct {
	*bucketclaim.BucketClaimListener
	claims cosi.Interface
}

func (o *once) InitializeBucketClient(c cosi.Interface) {
	o.claims = c
	o.BucketClaimListener.InitializeBucketClient(c)
}

func (o *once) Add(ctx context.Context, claim *v1alpha1.BucketClaim) error {
	now, err := o.claims.ObjectstorageV1alpha1().BucketClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	switch {
	case errors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case now.DeletionTimestamp.IsZero() && listen.Written(now):
		return nil
	}
	return o.BucketClaimListener.Add(ctx, now)
}

func (o *once) Update(ctx context.Context, old, changed *v1alpha1.BucketClaim) error {
	if changed.DeletionTimestamp.IsZero() {
		return o.Add(ctx, changed)
	}
	return o.BucketClaimListener.Update(ctx, old, changed)
}
