// Package ceph is a CSI driver for CephFS and RBD that behaves as ceph-csi does towards its callers: the same names,
// parameters, secrets, identifiers, error codes and asynchronous clones. It is for tests only: ceph-csi itself needs
// kernel drivers and images that a test machine lacks.
package ceph

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Version is what the drivers answer to GetPluginInfo; not a version of ceph-csi.
const Version = "cnsbench-test"

// credentials are a user of Ceph and its key.
type credentials struct{ id, key string }

// userCredentials are those of RBD.
func userCredentials(secrets map[string]string) (credentials, error) {
	return fromSecret(secrets, "userID", "userKey")
}

// adminCredentials are those of CephFS; later versions of ceph-csi also take userID and userKey.
func adminCredentials(secrets map[string]string) (credentials, error) {
	if secrets["adminID"] == "" && secrets["userID"] != "" {
		return userCredentials(secrets)
	}
	return fromSecret(secrets, "adminID", "adminKey")
}

func fromSecret(secrets map[string]string, idField, keyField string) (credentials, error) {
	switch {
	case len(secrets) == 0:
		return credentials{}, invalid("provided secret is empty")
	case secrets[idField] == "":
		return credentials{}, invalid("missing ID field '%s' in secrets", idField)
	case secrets[keyField] == "":
		return credentials{}, invalid("missing key field '%s' in secrets", keyField)
	}
	return credentials{secrets[idField], secrets[keyField]}, nil
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func notFound(format string, args ...any) error {
	return status.Errorf(codes.NotFound, format, args...)
}

func internal(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}
