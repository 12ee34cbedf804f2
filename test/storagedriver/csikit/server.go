// Package csikit has what the test drivers for Ceph and GlusterFS share: serving CSI on a socket, a log of all calls,
// locks that refuse instead of waiting, and publishing by bind mounts.
package csikit

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
)

// Driver is one CSI driver: what it answers, and where.
type Driver struct {
	Identity   csi.IdentityServer
	Controller csi.ControllerServer
	Node       csi.NodeServer
	// Socket is the path of its unix socket; Log that of its log, a csidriver.Record as JSON for each call.
	Socket, Log string
}

// Serve answers calls until ctx ends, then lets calls in progress finish.
func (d Driver) Serve(ctx context.Context) error {
	file, err := os.OpenFile(d.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Remove(d.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", d.Socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor((&callLog{file: file}).intercept), grpc.WaitForHandlers(true))
	csi.RegisterIdentityServer(server, d.Identity)
	csi.RegisterControllerServer(server, d.Controller)
	csi.RegisterNodeServer(server, d.Node)
	stop := context.AfterFunc(ctx, server.GracefulStop)
	defer stop()
	return server.Serve(listener)
}

// callLog appends a record of each call with one write, so that a killed driver loses none that it has answered.
type callLog struct {
	mu   sync.Mutex
	file *os.File
}

// intercept logs names and ids of a call, never its secrets.
func (l *callLog) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any,
	error) {
	start := time.Now()
	resp, err := handler(ctx, req)
	if err != nil {
		err = status.Convert(err).Err()
	}
	took := time.Since(start)
	r := csidriver.Record{
		Event: "rpc", RPC: path.Base(info.FullMethod), StartUnixNs: start.UnixNano(),
		EndUnixNs: start.UnixNano() + int64(took), DurationNs: int64(took),
		Code: status.Code(err).String(), Message: status.Convert(err).Message(),
	}
	identify(&r, req, resp)
	line, jsonErr := json.Marshal(r)
	if jsonErr != nil {
		return nil, jsonErr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, writeErr := l.file.Write(append(line, '\n')); writeErr != nil {
		return nil, writeErr
	}
	return resp, err
}

// identify sets the objects of a call.
func identify(r *csidriver.Record, req, resp any) {
	if m, ok := req.(interface{ GetName() string }); ok {
		r.Name = m.GetName()
	}
	if m, ok := req.(interface{ GetVolumeId() string }); ok {
		r.Volume = m.GetVolumeId()
	}
	if m, ok := req.(interface{ GetSourceVolumeId() string }); ok {
		r.Volume = m.GetSourceVolumeId()
	}
	if m, ok := req.(interface{ GetSnapshotId() string }); ok {
		r.Snapshot = m.GetSnapshotId()
	}
	switch m := resp.(type) {
	case *csi.CreateVolumeResponse:
		r.Volume = m.GetVolume().GetVolumeId()
	case *csi.CreateSnapshotResponse:
		r.Snapshot = m.GetSnapshot().GetSnapshotId()
	}
}
