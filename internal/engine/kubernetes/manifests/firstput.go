package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/op"
)

// firstPutInterval is the wait after a first PUT that the server refused.
const firstPutInterval = 100 * time.Millisecond

// bucketInfo is what COSI's sidecar writes into the Secret of a BucketAccess, under the key BucketInfo.
type bucketInfo struct {
	Spec struct {
		BucketName string `json:"bucketName"`
		S3         *struct {
			Endpoint        string `json:"endpoint"`
			Region          string `json:"region"`
			AccessKeyID     string `json:"accessKeyID"`
			AccessSecretKey string `json:"accessSecretKey"`
		} `json:"secretS3"`
	} `json:"spec"`
}

// wantsFirstPut says whether an object is to have a first PUT.
func wantsFirstPut(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()[engine.FirstPut] == "true"
}

// firstPut puts an object, of the access's name, with the credentials of a BucketAccess, again after each refusal until
// ctx ends: a store may take some time to know new credentials. Each request is an attempt of the op, which ends with
// the first success.
func firstPut(ctx context.Context, e *core.Run, access *unstructured.Unstructured, tr *op.Trace) error {
	if e.PutOnce == nil {
		return engine.Errorf("Unimplemented", "there is no client for a first PUT")
	}
	b, err := bucket(ctx, e, access)
	if err != nil {
		return err
	}
	for {
		at, refused, err := e.PutOnce(ctx, e.Session.Clock, b, access.GetName())
		if at != op.Never {
			tr.MarkAt(op.FirstPut, at, 0, "runner")
			tr.MarkAt(op.Ready, at, 0, "runner")
			tr.EndedAt(at)
		}
		if err == nil {
			return nil
		}
		failed := engine.Errorf("FirstPut", "first PUT into bucket %s: %v", b.Name, err).Wrap(err)
		if at != op.Never || !refused {
			return failed
		}
		select {
		case <-time.After(firstPutInterval):
			tr.Attempt()
		case <-ctx.Done():
			return errors.Join(failed, context.Cause(ctx))
		}
	}
}

// bucket reads the Secret of a BucketAccess.
func bucket(ctx context.Context, e *core.Run, access *unstructured.Unstructured) (b engine.Bucket, err error) {
	name, _, _ := unstructured.NestedString(access.Object, "spec", "credentialsSecretName")
	secret := new(corev1.Secret)
	if _, err := e.Client.Get(ctx, api.Secrets, access.GetNamespace(), name, secret); err != nil {
		return b, core.APIError(ctx, err)
	}
	var info bucketInfo
	if err := json.Unmarshal(secret.Data["BucketInfo"], &info); err != nil { // the text may have the keys
		return b, engine.Errorf("FirstPut", "the BucketInfo of Secret %s is not the JSON of COSI", name)
	}
	s3 := info.Spec.S3
	if s3 == nil {
		return b, engine.Errorf("FirstPut", "Secret %s has no credentials of S3", name)
	}
	return engine.Bucket{Endpoint: s3.Endpoint, Region: s3.Region, Name: info.Spec.BucketName,
		AccessKey: s3.AccessKeyID, SecretKey: s3.AccessSecretKey}, nil
}
