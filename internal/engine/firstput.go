package engine

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/op"
)

// FirstPut is the annotation of the manifest of a BucketAccess that requests a first PUT with its credentials, as
// "true".
const FirstPut = "cnsbench.dev/firstPut"

// BucketGroup is the API group of BucketClaim and BucketAccess.
const BucketGroup = "objectstorage.k8s.io"

// Bucket locates a bucket of S3 and has credentials for it.
type Bucket struct{ Endpoint, Region, Name, AccessKey, SecretKey string }

// PutOnce puts one object into a bucket, by one request, and returns when the response was complete. refused: the
// server responded with an error, which may be because it does not know new credentials yet. After a successful PUT it
// deletes the object; an error with a time is that of the deletion.
type PutOnce func(ctx context.Context, clock op.Clock, b Bucket, object string) (at op.Time, refused bool, err error)
