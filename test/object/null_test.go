package object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/minio/minio-go/v7"
	miniocredentials "github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/cnsbench/cnsbench/internal/object/nullserver"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

const nullObjectSize = 100_000 // bytes

// recent reports whether the null server could have been started at that time.
func recent(t time.Time) bool { return time.Since(t) > 0 && time.Since(t) < time.Hour }

// TestNullServerByAmazon runs each operation of the null server by Amazon's SDK with its default settings.
func TestNullServerByAmazon(t *testing.T) {
	address := clienttest.Loopback(t, nullserver.Options{Size: nullObjectSize}.Serve)
	sdk := awss3.New(awss3.Options{BaseEndpoint: &address, Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), RetryMaxAttempts: 1})
	bucket, key := aws.String("bucket"), aws.String("a key/ä")
	for _, tt := range []struct {
		name string
		do   func(context.Context) (ok bool, got any, err error)
	}{
		{"CreateBucket", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: bucket})
			return err == nil && *a.Location == "/bucket", a, err
		}},
		{"HeadBucket", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: bucket})
			return err == nil, a, err
		}},
		{"GetBucketLocation", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.GetBucketLocation(ctx, &awss3.GetBucketLocationInput{Bucket: bucket})
			return err == nil && a.LocationConstraint == "", a, err
		}},
		{"ListBuckets", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.ListBuckets(ctx, &awss3.ListBucketsInput{})
			return err == nil && len(a.Buckets) == 0, a, err
		}},
		{"ListObjects", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.ListObjects(ctx, &awss3.ListObjectsInput{Bucket: bucket, Prefix: aws.String("p&")})
			return err == nil && len(a.Contents) == 0 && !*a.IsTruncated && *a.Prefix == "p&" && *a.Name == "bucket", a, err
		}},
		{"ListObjectsV2", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: bucket, MaxKeys: aws.Int32(5)})
			return err == nil && *a.KeyCount == 0 && !*a.IsTruncated && *a.MaxKeys == 5, a, err
		}},
		{"PutObject", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key,
				Body: bytes.NewReader(make([]byte, 5<<20))}) // large enough for Expect: 100-continue
			return err == nil && *a.ETag != "", a, err
		}},
		{"HeadObject", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: bucket, Key: key})
			return err == nil && *a.ContentLength == nullObjectSize && recent(*a.LastModified) && *a.ETag != "" &&
				*a.AcceptRanges == "bytes" && *a.ContentType == "application/octet-stream", a, err
		}},
		{"GetObject", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key})
			if err != nil {
				return false, nil, err
			}
			defer a.Body.Close()
			content, err := io.ReadAll(a.Body)
			return len(content) == nullObjectSize && recent(*a.LastModified), a, err
		}},
		{"GetObject of a range", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key, Range: aws.String("bytes=-10")})
			if err != nil {
				return false, nil, err
			}
			defer a.Body.Close()
			content, err := io.ReadAll(a.Body)
			return len(content) == 10 && *a.ContentRange == "bytes 99990-99999/100000", a, err
		}},
		{"CopyObject", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.CopyObject(ctx, &awss3.CopyObjectInput{Bucket: bucket, Key: key,
				CopySource: aws.String("bucket/other")})
			return err == nil && *a.CopyObjectResult.ETag != "" && recent(*a.CopyObjectResult.LastModified), a, err
		}},
		{"multipart", func(ctx context.Context) (bool, any, error) {
			return amazonParts(ctx, sdk, bucket, key)
		}},
		{"AbortMultipartUpload", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{Bucket: bucket, Key: key,
				UploadId: aws.String("null")})
			return err == nil, a, err
		}},
		{"DeleteObject", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: bucket, Key: key})
			return err == nil, a, err
		}},
		{"DeleteObjects", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.DeleteObjects(ctx, &awss3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{
				Objects: []types.ObjectIdentifier{{Key: key}, {Key: aws.String("b<")}}}})
			return err == nil && len(a.Deleted) == 2 && *a.Deleted[0].Key == *key && *a.Deleted[1].Key == "b<" &&
				len(a.Errors) == 0, a, err
		}},
		{"DeleteObjects, quiet", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.DeleteObjects(ctx, &awss3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{
				Quiet: aws.Bool(true), Objects: []types.ObjectIdentifier{{Key: key}}}})
			return err == nil && len(a.Deleted) == 0 && len(a.Errors) == 0, a, err
		}},
		{"DeleteBucket", func(ctx context.Context) (bool, any, error) {
			a, err := sdk.DeleteBucket(ctx, &awss3.DeleteBucketInput{Bucket: bucket})
			return err == nil, a, err
		}},
		{"GetBucketPolicy, which it does not have", func(ctx context.Context) (bool, any, error) {
			_, err := sdk.GetBucketPolicy(ctx, &awss3.GetBucketPolicyInput{Bucket: bucket})
			var e smithy.APIError
			return errors.As(err, &e) && e.ErrorCode() == "NotImplemented", err, nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			if ok, got, err := tt.do(t.Context()); !ok || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			if took := time.Since(began); took > 900*time.Millisecond { // a client waits 1 s for 100 Continue
				t.Errorf("it took %v", took)
			}
		})
	}
}

// amazonParts uploads an object in parts, one of them a copy.
func amazonParts(ctx context.Context, sdk *awss3.Client, bucket, key *string) (bool, any, error) {
	made, err := sdk.CreateMultipartUpload(ctx, &awss3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	if err != nil {
		return false, nil, err
	}
	part, err := sdk.UploadPart(ctx, &awss3.UploadPartInput{Bucket: bucket, Key: key, UploadId: made.UploadId,
		PartNumber: aws.Int32(1), Body: strings.NewReader("content")})
	if err != nil {
		return false, made, err
	}
	second, err := sdk.UploadPartCopy(ctx, &awss3.UploadPartCopyInput{Bucket: bucket, Key: key, UploadId: made.UploadId,
		PartNumber: aws.Int32(2), CopySource: aws.String("bucket/other")})
	if err != nil {
		return false, part, err
	}
	list, err := sdk.ListParts(ctx, &awss3.ListPartsInput{Bucket: bucket, Key: key, UploadId: made.UploadId})
	if err != nil || len(list.Parts) > 0 {
		return false, list, err
	}
	done, err := sdk.CompleteMultipartUpload(ctx, &awss3.CompleteMultipartUploadInput{Bucket: bucket, Key: key,
		UploadId: made.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{
			{ETag: part.ETag, PartNumber: aws.Int32(1)}, {ETag: second.CopyPartResult.ETag, PartNumber: aws.Int32(2)}}}})
	return err == nil && *made.Key == *key && *done.Key == *key && *done.Bucket == *bucket && *done.ETag != "", done, err
}

// TestNullServerByMinIO runs each operation of the null server by MinIO's client, with and without trailers of
// checksums.
func TestNullServerByMinIO(t *testing.T) {
	for name, trailers := range map[string]bool{"plain": false, "trailers": true} {
		t.Run(name, func(t *testing.T) {
			address := clienttest.Loopback(t, nullserver.Options{Size: nullObjectSize}.Serve)
			c, err := minio.New(strings.TrimPrefix(address, "http://"), &minio.Options{
				Creds: miniocredentials.NewStaticV4("key", "secret", ""), TrailingHeaders: trailers, MaxRetries: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, tt := range minioOperations(&minio.Core{Client: c}) {
				t.Run(tt.name, func(t *testing.T) {
					if ok, got, err := tt.do(t.Context()); !ok || err != nil {
						t.Errorf("%+v, %v", got, err)
					}
				})
			}
		})
	}
}

type operation struct {
	name string
	do   func(context.Context) (ok bool, got any, err error)
}

func minioOperations(c *minio.Core) []operation {
	const bucket, key = "bucket", "a key/ä"
	content := make([]byte, 1000)
	return slices.Concat([]operation{
		{"make bucket", func(ctx context.Context) (bool, any, error) {
			return true, nil, c.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
		}},
		{"bucket exists", func(ctx context.Context) (bool, any, error) {
			ok, err := c.BucketExists(ctx, bucket)
			return ok, ok, err
		}},
		{"location", func(ctx context.Context) (bool, any, error) {
			l, err := c.GetBucketLocation(ctx, bucket)
			return l == "us-east-1", l, err
		}},
		{"buckets", func(ctx context.Context) (bool, any, error) {
			list, err := c.ListBuckets(ctx)
			return len(list) == 0, list, err
		}},
		{"list", func(context.Context) (bool, any, error) {
			a, err := c.ListObjects(bucket, "p&", "", "/", 5)
			return len(a.Contents) == 0 && !a.IsTruncated && a.MaxKeys == 5, a, err
		}},
		{"list, version 2", func(context.Context) (bool, any, error) {
			a, err := c.ListObjectsV2(bucket, "p&", "", "", "/", 5)
			return len(a.Contents) == 0 && !a.IsTruncated && a.MaxKeys == 5, a, err
		}},
		{"put", func(ctx context.Context) (bool, any, error) {
			a, err := c.Client.PutObject(ctx, bucket, key, bytes.NewReader(content), int64(len(content)),
				minio.PutObjectOptions{})
			return a.ETag != "" && a.Size == int64(len(content)), a, err
		}},
		{"put of any length", func(ctx context.Context) (bool, any, error) {
			a, err := c.Client.PutObject(ctx, bucket, key, bytes.NewReader(make([]byte, 11<<20)), -1,
				minio.PutObjectOptions{PartSize: 5 << 20})
			return a.Size == 11<<20, a, err
		}},
		{"stat", func(ctx context.Context) (bool, any, error) {
			a, err := c.StatObject(ctx, bucket, key, minio.StatObjectOptions{})
			return a.Size == nullObjectSize && recent(a.LastModified) && a.ETag != "", a, err
		}},
		{"get", func(ctx context.Context) (bool, any, error) {
			o, err := c.Client.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
			if err != nil {
				return false, nil, err
			}
			defer o.Close()
			got, err := io.ReadAll(o)
			return len(got) == nullObjectSize, len(got), err
		}},
		{"read at", func(ctx context.Context) (bool, any, error) {
			o, err := c.Client.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
			if err != nil {
				return false, nil, err
			}
			defer o.Close()
			n, err := o.ReadAt(make([]byte, 10), 5000)
			return n == 10, n, err
		}},
		{"copy", func(ctx context.Context) (bool, any, error) {
			a, err := c.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: key},
				minio.CopySrcOptions{Bucket: bucket, Object: "other"})
			return a.ETag != "" && recent(a.LastModified), a, err
		}},
		{"multipart", func(ctx context.Context) (bool, any, error) {
			id, err := c.NewMultipartUpload(ctx, bucket, key, minio.PutObjectOptions{})
			if err != nil {
				return false, id, err
			}
			p, err := c.PutObjectPart(ctx, bucket, key, id, 1, bytes.NewReader(content), int64(len(content)),
				minio.PutObjectPartOptions{})
			if err != nil {
				return false, p, err
			}
			a, err := c.CompleteMultipartUpload(ctx, bucket, key, id, []minio.CompletePart{{PartNumber: 1, ETag: p.ETag}},
				minio.PutObjectOptions{})
			return a.Key == key && a.Bucket == bucket && a.ETag != "", a, err
		}},
		{"abort", func(ctx context.Context) (bool, any, error) {
			return true, nil, c.AbortMultipartUpload(ctx, bucket, key, "null")
		}},
	}, minioRemovals(c, bucket, key))
}

func minioRemovals(c *minio.Core, bucket, key string) []operation {
	return []operation{
		{"remove", func(ctx context.Context) (bool, any, error) {
			return true, nil, c.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{})
		}},
		{"remove several", func(ctx context.Context) (bool, any, error) {
			objects := make(chan minio.ObjectInfo, 2)
			objects <- minio.ObjectInfo{Key: key}
			objects <- minio.ObjectInfo{Key: "b<"}
			close(objects)
			var names []string
			for r := range c.RemoveObjectsWithResult(ctx, bucket, objects, minio.RemoveObjectsOptions{}) {
				if r.Err != nil {
					return false, r, r.Err
				}
				names = append(names, r.ObjectName)
			}
			return slices.Equal(names, []string{key, "b<"}), names, nil
		}},
		{"remove several, quiet", func(ctx context.Context) (bool, any, error) {
			objects := make(chan minio.ObjectInfo, 1)
			objects <- minio.ObjectInfo{Key: key}
			close(objects)
			for r := range c.RemoveObjects(ctx, bucket, objects, minio.RemoveObjectsOptions{}) {
				return false, r, r.Err
			}
			return true, nil, nil
		}},
		{"remove bucket", func(ctx context.Context) (bool, any, error) {
			return true, nil, c.RemoveBucket(ctx, bucket)
		}},
		{"lifecycle, which it does not have", func(ctx context.Context) (bool, any, error) {
			_, err := c.GetBucketLifecycle(ctx, bucket)
			e := minio.ToErrorResponse(err)
			return e.Code == "NotImplemented" && e.StatusCode == http.StatusNotImplemented, err, nil
		}},
	}
}
