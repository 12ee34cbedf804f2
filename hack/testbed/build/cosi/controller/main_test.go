package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/v1alpha1"
	"sigs.k8s.io/container-object-storage-interface/client/clientset/versioned/fake"
	"sigs.k8s.io/container-object-storage-interface/controller/pkg/bucketclaim"
)

// A change that is older than what the sidecar has written leaves a claim ready.
func TestOlderChangeLeavesReady(t *testing.T) {
	claim := &v1alpha1.BucketClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u"},
		Spec: v1alpha1.BucketClaimSpec{BucketClassName: "class"}}
	api := fake.NewSimpleClientset(claim, &v1alpha1.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}})
	claims := api.ObjectstorageV1alpha1().BucketClaims("ns")
	o := &once{BucketClaimListener: bucketclaim.NewBucketClaimListener()}
	o.InitializeBucketClient(api)
	if err := o.Add(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	made, err := claims.Get(t.Context(), "c", metav1.GetOptions{})
	if err != nil || made.Status.BucketName != "bucket-u" {
		t.Fatalf("%+v, %v; want a Bucket's name", made, err)
	}
	ready := made.DeepCopy()
	ready.Status.BucketReady = true
	if _, err := claims.UpdateStatus(t.Context(), ready, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := o.Update(t.Context(), claim, made); err != nil {
		t.Fatal(err)
	}
	if now, err := claims.Get(t.Context(), "c", metav1.GetOptions{}); err != nil || !now.Status.BucketReady {
		t.Errorf("%+v, %v; want it ready", now, err)
	}
}
