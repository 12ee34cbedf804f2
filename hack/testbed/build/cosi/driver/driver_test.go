package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"google.golang.org/grpc/codes"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/consts"
	cosi "sigs.k8s.io/container-object-storage-interface/proto"
)

// TestLife takes a bucket of a real versitygw through all calls, each twice: buckets and accounts are as asked for,
// keys work until they are revoked, for their own bucket only, and a bucket with objects is not deleted.
func TestLife(t *testing.T) {
	d, ctx := start(t), t.Context()
	for _, name := range []string{"bucket-1", "bucket-2", "bucket-1"} {
		if r, err := d.DriverCreateBucket(ctx, &cosi.DriverCreateBucketRequest{Name: name}); err != nil ||
			r.GetBucketId() != name {
			t.Fatalf("%v, %v", r, err)
		}
	}
	grant := func(account string) *minio.Client {
		t.Helper()
		r, err := d.DriverGrantBucketAccess(ctx, &cosi.DriverGrantBucketAccessRequest{BucketId: "bucket-1", Name: account,
			AuthenticationType: cosi.AuthenticationType_Key})
		if err != nil {
			t.Fatal(err)
		}
		s := r.GetCredentials()[consts.S3Key].GetSecrets()
		c, err := minio.New(strings.TrimPrefix(s[consts.S3Endpoint], "http://"), &minio.Options{MaxRetries: 1,
			Region: s[consts.S3Region], BucketLookup: minio.BucketLookupPath, Creds: credentials.NewStaticV4(
				s[consts.S3SecretAccessKeyID], s[consts.S3SecretAccessSecretKey], "")})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	put := func(c *minio.Client, bucket string) error {
		_, err := c.PutObject(ctx, bucket, "o", strings.NewReader("text"), 4, minio.PutObjectOptions{})
		return err
	}
	first, second, again := grant("ba-1"), grant("ba-2"), grant("ba-1")
	for _, c := range []*minio.Client{first, second, again} {
		if err := put(c, "bucket-1"); err != nil {
			t.Error(err)
		}
	}
	if err := put(first, "bucket-2"); minio.ToErrorResponse(err).Code != minio.AccessDenied {
		t.Errorf("another's bucket: %v", err)
	}
	_, err := d.DriverDeleteBucket(ctx, &cosi.DriverDeleteBucketRequest{BucketId: "bucket-1"})
	if err == nil || codeOf(err) != codes.FailedPrecondition {
		t.Errorf("a bucket with an object: %v", err)
	}
	for range 2 {
		if _, err := d.DriverRevokeBucketAccess(ctx, &cosi.DriverRevokeBucketAccessRequest{BucketId: "bucket-1",
			AccountId: "ba-1"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(first, "bucket-1"); err == nil {
		t.Error("revoked keys work")
	}
	if err := put(second, "bucket-1"); err != nil {
		t.Errorf("keys beside the revoked ones: %v", err)
	}
	if err := second.RemoveObject(ctx, "bucket-1", "o", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bucket-1", "bucket-2", "bucket-1"} {
		if _, err := d.DriverDeleteBucket(ctx, &cosi.DriverDeleteBucketRequest{BucketId: name}); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := d.gateway.s3.ListBuckets(ctx); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	_, err = d.DriverGrantBucketAccess(ctx, &cosi.DriverGrantBucketAccessRequest{BucketId: "bucket-1", Name: "ba-3",
		AuthenticationType: cosi.AuthenticationType_IAM})
	if err == nil || codeOf(err) != codes.InvalidArgument {
		t.Errorf("IAM: %v", err)
	}
	_, err = d.DriverGrantBucketAccess(ctx, &cosi.DriverGrantBucketAccessRequest{BucketId: "bucket-1", Name: "ba-3",
		AuthenticationType: cosi.AuthenticationType_Key})
	if err == nil || codeOf(err) != codes.NotFound {
		t.Errorf("a bucket that is gone: %v", err)
	}
}

// start starts a versitygw with a driver in this process.
func start(t *testing.T) *driver {
	t.Helper()
	program, err := filepath.Abs("../../../../../out/servers/versitygw")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%v: run make object-servers", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"data", "meta", "iam"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "--port", address, "--quiet", "--health", "/health", "--iam-dir", dir+"/iam", "posix",
		"--sidecar", dir+"/meta", dir+"/data")
	cmd.Env = []string{"ROOT_ACCESS_KEY=admin", "ROOT_SECRET_KEY=secret"}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.Get(fmt.Sprintf("http://%s/health", address))
		if err == nil {
			_ = r.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	g, err := newGateway("http://"+address, "us-east-1", "admin", "secret")
	if err != nil {
		t.Fatal(err)
	}
	return &driver{name: "test", gateway: g}
}
