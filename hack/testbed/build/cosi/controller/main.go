// Command controller is upstream's controller of COSI: for each BucketClaim it makes a Bucket.
package main

import (
	"os"

	"k8s.io/klog/v2"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/v1alpha1"
	"sigs.k8s.io/container-object-storage-interface/controller/pkg/bucketclaim"

	"github.com/cnsbench/cnsbench/hack/testbed/build/cosi/listen"
)

func main() {
	var f listen.Flags
	ctx := f.Parse()
	l, err := listen.New(f, "cosi-controller")
	if err == nil {
		err = listen.Watch(ctx, l, "bucketclaims", &v1alpha1.BucketClaim{}, bucketclaim.NewBucketClaimListener())
	}
	if err != nil {
		klog.ErrorS(err, "ending")
		os.Exit(1)
	}
	l.Wait()
}
