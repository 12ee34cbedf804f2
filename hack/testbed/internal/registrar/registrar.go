// Package registrar tells a kubelet of CSI drivers: it serves the kubelet's plugin registration on a socket per driver
// in
// the folder that the kubelet watches.
package registrar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Driver is one driver to tell of.
type Driver struct {
	Short    string // of its registration socket
	Name     string
	Endpoint string // its unix socket
}

// Serve registers the drivers until ctx ends. A kubelet that refuses one is offered it again: it looks at a socket only
// when that appears.
func Serve(ctx context.Context, dir string, drivers []Driver) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	for _, d := range drivers {
		go func() { ended <- d.keepOffering(ctx, filepath.Join(dir, d.Short+"-reg.sock")) }()
	}
	var problems []error
	for range drivers {
		problems = append(problems, <-ended)
		cancel()
	}
	return errors.Join(problems...)
}

const refusedPause = time.Second

func (d Driver) keepOffering(ctx context.Context, socket string) error {
	for ctx.Err() == nil {
		if err := d.offer(ctx, socket); err != nil {
			return fmt.Errorf("registering %s: %w", d.Name, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(refusedPause):
		}
	}
	return nil
}

// offer serves until the kubelet refuses the driver, or ctx ends.
func (d Driver) offer(ctx context.Context, socket string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	o := &offered{Driver: d, refused: make(chan struct{}, 1)}
	registration.RegisterRegistrationServer(server, o)
	go func() {
		select {
		case <-ctx.Done():
		case <-o.refused:
		}
		server.GracefulStop()
	}()
	return server.Serve(listener)
}

// offered is the registration service of one driver.
type offered struct {
	registration.UnimplementedRegistrationServer
	Driver
	refused chan struct{}
}

// GetInfo implements registration.RegistrationServer.
func (o *offered) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: o.Name, Endpoint: o.Endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer.
func (o *offered) NotifyRegistrationStatus(_ context.Context,
	s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("%s: registered %t %s", o.Name, s.GetPluginRegistered(), s.GetError())
	if !s.GetPluginRegistered() {
		select {
		case o.refused <- struct{}{}:
		default:
		}
	}
	return &registration.RegistrationStatusResponse{}, nil
}
