// Command driver is a driver of COSI for versitygw: a Bucket is a bucket, and a BucketAccess an account that the
// bucket's policy lets in. It keeps nothing itself: names and secrets are functions of what it is asked for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/minio/minio-go/v7"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/consts"
	cosi "sigs.k8s.io/container-object-storage-interface/proto"
)

func main() {
	socket := flag.String("socket", "", "unix socket to serve")
	name := flag.String("name", "versitygw.cosi.cnsbench.dev", "the driver's name")
	endpoint := flag.String("endpoint", "", "URL of versitygw; its administrator is in ROOT_ACCESS_KEY, ROOT_SECRET_KEY")
	region := flag.String("region", "us-east-1", "versitygw's region")
	flag.Parse()
	if err := run(*socket, *name, *endpoint, *region); err != nil {
		log.Fatal(err)
	}
}

func run(socket, name, endpoint, region string) error {
	g, err := newGateway(endpoint, region, os.Getenv("ROOT_ACCESS_KEY"), os.Getenv("ROOT_SECRET_KEY"))
	if err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	at, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logged))
	d := &driver{name: name, gateway: g}
	cosi.RegisterIdentityServer(server, d)
	cosi.RegisterProvisionerServer(server, d)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, server.GracefulStop)
	return server.Serve(at)
}

// logged logs each call and its result, without what it carries: answers have credentials.
func logged(ctx context.Context, r any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (any, error) {
	answer, err := call(ctx, r)
	if err != nil {
		err = status.Error(codeOf(err), err.Error())
	}
	log.Print(info.FullMethod, " ", status.Code(err), " ", status.Convert(err).Message())
	return answer, err
}

// codeOf is the gRPC code of an error of versitygw.
func codeOf(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	var answer minio.ErrorResponse
	errors.As(err, &answer)
	switch answer.Code {
	case minio.NoSuchBucket:
		return codes.NotFound
	case "BucketNotEmpty":
		return codes.FailedPrecondition
	case minio.InvalidBucketName:
		return codes.InvalidArgument
	case minio.AccessDenied:
		return codes.PermissionDenied
	}
	return codes.Internal
}

type driver struct {
	cosi.UnimplementedIdentityServer
	cosi.UnimplementedProvisionerServer
	name    string
	gateway *gateway
}

func (d *driver) DriverGetInfo(context.Context, *cosi.DriverGetInfoRequest) (*cosi.DriverGetInfoResponse, error) {
	return &cosi.DriverGetInfoResponse{Name: d.name}, nil
}

func (d *driver) DriverCreateBucket(ctx context.Context, r *cosi.DriverCreateBucketRequest) (
	*cosi.DriverCreateBucketResponse, error) {
	if len(r.GetParameters()) > 0 {
		return nil, status.Error(codes.InvalidArgument, "there are no parameters of buckets")
	}
	err := d.gateway.s3.MakeBucket(ctx, r.GetName(), minio.MakeBucketOptions{Region: d.gateway.region})
	if err != nil && minio.ToErrorResponse(err).Code != minio.BucketAlreadyOwnedByYou {
		return nil, err
	}
	return &cosi.DriverCreateBucketResponse{BucketId: r.GetName(), BucketInfo: &cosi.Protocol{
		Type: &cosi.Protocol_S3{S3: &cosi.S3{Region: d.gateway.region, SignatureVersion: cosi.S3SignatureVersion_S3V4}},
	}}, nil
}

// DriverDeleteBucket refuses a bucket with objects: only a user may decide about data.
func (d *driver) DriverDeleteBucket(ctx context.Context, r *cosi.DriverDeleteBucketRequest) (
	*cosi.DriverDeleteBucketResponse, error) {
	err := d.gateway.s3.RemoveBucket(ctx, r.GetBucketId())
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchBucket {
		return nil, err
	}
	return &cosi.DriverDeleteBucketResponse{}, nil
}

func (d *driver) DriverGrantBucketAccess(ctx context.Context, r *cosi.DriverGrantBucketAccessRequest) (
	*cosi.DriverGrantBucketAccessResponse, error) {
	if r.GetAuthenticationType() != cosi.AuthenticationType_Key {
		return nil, status.Error(codes.InvalidArgument, "versitygw has keys only: authenticationType must be Key")
	}
	if err := d.gateway.grant(ctx, r.GetBucketId(), r.GetName()); err != nil {
		return nil, fmt.Errorf("granting access to %s: %w", r.GetBucketId(), err)
	}
	return &cosi.DriverGrantBucketAccessResponse{AccountId: r.GetName(), Credentials: map[string]*cosi.CredentialDetails{
		consts.S3Key: {Secrets: map[string]string{
			consts.S3Endpoint: d.gateway.endpoint, consts.S3Region: d.gateway.region,
			consts.S3SecretAccessKeyID: r.GetName(), consts.S3SecretAccessSecretKey: d.gateway.secretOf(r.GetName())}}}}, nil
}

func (d *driver) DriverRevokeBucketAccess(ctx context.Context, r *cosi.DriverRevokeBucketAccessRequest) (
	*cosi.DriverRevokeBucketAccessResponse, error) {
	if err := d.gateway.revoke(ctx, r.GetBucketId(), r.GetAccountId()); err != nil {
		return nil, fmt.Errorf("revoking access to %s: %w", r.GetBucketId(), err)
	}
	return &cosi.DriverRevokeBucketAccessResponse{}, nil
}
