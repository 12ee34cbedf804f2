// Package object holds our clients of object storage against those that others
// wrote: SDKs read what we write, and the other way round, on real servers. It
// is a module of its own, so that the product does not carry the SDKs.
package object

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	swiftsdk "github.com/ncw/swift/v2"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/payload"
)

// oracle is an SDK. An error is returned as it is.
type oracle interface {
	make(ctx context.Context, container string) error
	put(ctx context.Context, container, object string, content []byte) error
	putParts(ctx context.Context, container, object string, parts [][]byte) error
	get(ctx context.Context, container, object string) ([]byte, error)
	list(ctx context.Context, container, prefix string) ([]string, error)
	remove(ctx context.Context, container, object string) error
}

// amazon is Amazon's SDK for Go.
type amazon struct{ *awss3.Client }

func newAmazon(address, access, secret string) amazon {
	return amazon{awss3.New(awss3.Options{BaseEndpoint: &address, Region: "us-east-1", UsePathStyle: true,
		Credentials:                credentials.NewStaticCredentialsProvider(access, secret, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired, // Swift knows none of the new ones
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})}
}

func (a amazon) make(ctx context.Context, container string) error {
	_, err := a.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: &container})
	return err
}

func (a amazon) put(ctx context.Context, container, object string, content []byte) error {
	_, err := a.PutObject(ctx, &awss3.PutObjectInput{Bucket: &container, Key: &object, Body: bytes.NewReader(content)})
	return err
}

func (a amazon) putParts(ctx context.Context, container, object string, parts [][]byte) error {
	made, err := a.CreateMultipartUpload(ctx, &awss3.CreateMultipartUploadInput{Bucket: &container, Key: &object})
	if err != nil {
		return err
	}
	var done []types.CompletedPart
	for i, p := range parts {
		n := int32(i + 1)
		part, err := a.UploadPart(ctx, &awss3.UploadPartInput{Bucket: &container, Key: &object, UploadId: made.UploadId,
			PartNumber: &n, Body: bytes.NewReader(p)})
		if err != nil {
			return err
		}
		done = append(done, types.CompletedPart{ETag: part.ETag, PartNumber: &n})
	}
	_, err = a.CompleteMultipartUpload(ctx, &awss3.CompleteMultipartUploadInput{Bucket: &container, Key: &object,
		UploadId:        made.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: done}})
	return err
}

func (a amazon) get(ctx context.Context, container, object string) ([]byte, error) {
	r, err := a.GetObject(ctx, &awss3.GetObjectInput{Bucket: &container, Key: &object})
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

func (a amazon) list(ctx context.Context, container, prefix string) ([]string, error) {
	r, err := a.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: &container, Prefix: &prefix})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range r.Contents {
		names = append(names, *o.Key)
	}
	return names, nil
}

func (a amazon) remove(ctx context.Context, container, object string) error {
	_, err := a.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &container, Key: &object})
	return err
}

// ncw is ncw/swift, the SDK of Swift.
type ncw struct{ *swiftsdk.Connection }

func (n ncw) make(ctx context.Context, container string) error {
	return n.ContainerCreate(ctx, container, nil)
}

func (n ncw) put(ctx context.Context, container, object string, content []byte) error {
	return n.ObjectPutBytes(ctx, container, object, content, "application/octet-stream")
}

func (n ncw) putParts(ctx context.Context, container, object string, parts [][]byte) error {
	f, err := n.StaticLargeObjectCreate(ctx, &swiftsdk.LargeObjectOpts{Container: container, ObjectName: object,
		ChunkSize: int64(len(parts[0])), SegmentContainer: container,
		SegmentPrefix: object + "-segments"})
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return err
		}
	}
	return f.Close()
}

func (n ncw) get(ctx context.Context, container, object string) ([]byte, error) {
	return n.ObjectGetBytes(ctx, container, object)
}

func (n ncw) list(ctx context.Context, container, prefix string) ([]string, error) {
	return n.ObjectNamesAll(ctx, container, &swiftsdk.ObjectsOpts{Prefix: prefix})
}

func (n ncw) remove(ctx context.Context, container, object string) error {
	return n.ObjectDelete(ctx, container, object)
}

// content of an object as our client writes it, in the write of that number.
func content(container, object string, size int64, writer uint64) []byte {
	b := make([]byte, size)
	payload.ID{Key: payload.Key(container, object), Size: size, Writer: writer}.Fill(b, 0)
	return b
}

const partSize = 5 << 20 // the least that S3 takes, but for the last

// bothWays holds a store of ours against an SDK on the same server.
func bothWays(t *testing.T, ours client.Store, sdk oracle, container string) {
	k := &pair{t: t, sdk: sdk, container: container}
	var err error
	if k.client, err = ours.Client(); err != nil {
		t.Fatal(err)
	}
	defer k.client.Close()
	k.ours(client.Request{Verb: client.MakeContainer})
	k.writtenByUs()
	k.writtenByThem()
	k.listed()
	t.Run("somebody else's container", func(t *testing.T) {
		theirs := container + "-theirs"
		if err := sdk.make(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		var res client.Result
		k.client.Do(t.Context(), &client.Request{Verb: client.RemoveContainer, Container: []byte(theirs)}, &res)
		if res.OK() || res.Code != client.NotOurs {
			t.Errorf("what the SDK made was removed: %s", res.Label())
		}
	})
}

type pair struct {
	t         *testing.T
	client    client.Client
	sdk       oracle
	container string
}

// ours does a request of ours, which must succeed.
func (k *pair) ours(r client.Request) client.Result {
	k.t.Helper()
	r.Container = []byte(k.container)
	var res client.Result
	if k.client.Do(k.t.Context(), &r, &res); !res.OK() {
		k.t.Errorf("verb %d of %s: %s %s", r.Verb, r.Object, res.Label(), res.Detail)
	}
	return res
}

func (k *pair) must(err error, what string, args ...any) {
	k.t.Helper()
	if err != nil {
		k.t.Errorf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

var names = []string{"plain", "dir/with some/spaces", "ö b+c&d=e%f'()~_.-"}

func (k *pair) writtenByUs() {
	for i, name := range names {
		for _, size := range []int64{0, 1, 4096, 70001} {
			k.ours(client.Request{Verb: client.Put, Object: []byte(name), Size: size, Writer: uint64(i)})
			k.sdkReads(name, content(k.container, name, size, uint64(i)))
		}
	}
	size := int64(2*partSize + 5000)
	k.ours(client.Request{Verb: client.PutParts, Object: []byte("parts-of-ours"), Size: size, PartSize: partSize,
		Writer: 9})
	k.sdkReads("parts-of-ours", content(k.container, "parts-of-ours", size, 9))
	k.ours(client.Request{Verb: client.Copy, Object: []byte("plain"), To: []byte("copy-of-ours")})
	k.sdkReads("copy-of-ours", content(k.container, "plain", 70001, 0))
	k.ours(client.Request{Verb: client.Delete, Object: []byte("copy-of-ours")})
	if _, err := k.sdk.get(k.t.Context(), k.container, "copy-of-ours"); err == nil {
		k.t.Error("the SDK still reads what we deleted")
	}
}

func (k *pair) sdkReads(name string, want []byte) {
	k.t.Helper()
	got, err := k.sdk.get(k.t.Context(), k.container, name)
	k.must(err, "the SDK reads %s", name)
	if !bytes.Equal(got, want) {
		k.t.Errorf("the SDK read %d bytes of %s, want %d, or others", len(got), name, len(want))
	}
}

func (k *pair) writtenByThem() {
	ctx := k.t.Context()
	for _, name := range names {
		name += "-theirs"
		for _, size := range []int64{0, 1, 4096, 70001} {
			k.must(k.sdk.put(ctx, k.container, name, content(k.container, name, size, 77)), "the SDK writes %s", name)
			k.weRead(name, -1, 0, size)
		}
		k.weRead(name, 8192, 4096, 8192)
	}
	size := int64(2*partSize + 5000)
	all := content(k.container, "parts-of-theirs", size, 78)
	k.must(k.sdk.putParts(ctx, k.container, "parts-of-theirs", slices.Collect(slices.Chunk(all, partSize))),
		"the SDK writes parts")
	k.weRead("parts-of-theirs", -1, 0, size)
	k.weRead("parts-of-theirs", 16384, partSize-8192, 16384) // over the seam
	k.must(k.sdk.remove(ctx, k.container, "plain-theirs"), "the SDK deletes")
	var res client.Result
	k.client.Do(ctx, &client.Request{Verb: client.Head, Container: []byte(k.container), Object: []byte("plain-theirs")},
		&res)
	if res.Status != 404 {
		k.t.Errorf("what the SDK deleted: %s, want 404", res.Label())
	}
}

// weRead reads a range, or with a length below 0 all, and checks every byte.
func (k *pair) weRead(name string, length, offset, want int64) {
	k.t.Helper()
	// what is empty is called short
	res := k.ours(client.Request{Verb: client.Get, Object: []byte(name), Length: length, Offset: offset,
		Verify: want > 0})
	if res.Bytes != want {
		k.t.Errorf("%s: we read %d bytes, want %d", name, res.Bytes, want)
	}
}

func (k *pair) listed() {
	for _, prefix := range []string{"", "dir/", "ö b+", "none"} {
		theirs, err := k.sdk.list(k.t.Context(), k.container, prefix)
		k.must(err, "the SDK lists %q", prefix)
		ours := k.ours(client.Request{Verb: client.List, Object: []byte(prefix), MaxKeys: 1000})
		if ours.Keys != len(theirs) {
			k.t.Errorf("with prefix %q we count %d keys, the SDK lists %q", prefix, ours.Keys, theirs)
		}
	}
}
