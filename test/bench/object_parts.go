package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/servers"
)

// An object in parts that are all in flight, and as many single objects of the same bytes.
const (
	partsInFlight = 4
	partSize      = 64 << 20
	objectInParts = 256 << 20
)

// objectParts compares the bandwidth of one object whose parts are in flight together with that of single uploads at
// the same time, in turns. versitygw joins parts by copy_file_range, which copies no bytes on XFS.
func objectParts(ctx context.Context, e *env) (table, error) {
	var t table
	dir, err := e.dataDir()
	if err != nil {
		return t, err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	if err := e.partsAtVersity(ctx, &t, "versitygw", dir); err != nil {
		return t, err
	}
	mounted, unmount, err := mountXFS(ctx, dir)
	if err != nil {
		t.note("**versitygw on XFS is not measured**: %v.", err)
	} else {
		defer func() { warn(unmount()) }()
		if err := e.partsAtVersity(ctx, &t, "versitygw on XFS", mounted); err != nil {
			return t, err
		}
	}
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return t, err
	}
	defer func() { warn(stop()) }()
	return t, e.partsAt(ctx, &t, "a null server", address, s3.Credentials{AccessKey: "bench", SecretKey: "benchbench"})
}

// partsAtVersity measures at a versitygw with its files in dir.
func (e *env) partsAtVersity(ctx context.Context, t *table, name, dir string) error {
	server, err := servers.StartVersity(ctx, dir)
	if errors.Is(err, servers.ErrMissing) {
		t.note("**%s is not measured**: %v.", name, err)
		return nil
	}
	if err != nil {
		return err
	}
	defer server.Stop()
	return e.partsAt(ctx, t, name, server.Address, s3.Credentials{AccessKey: servers.VersityKey,
		SecretKey: servers.VersitySecret})
}

// mountXFS mounts a new XFS of 4 GiB in a file of dir.
func mountXFS(ctx context.Context, dir string) (mounted string, unmount func() error, err error) {
	image, mounted := filepath.Join(dir, "xfs.img"), filepath.Join(dir, "xfs")
	run := func(name string, args ...string) error {
		if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
		}
		return nil
	}
	err = errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 4<<30), os.Mkdir(mounted, 0o755))
	if err != nil {
		return "", nil, err
	}
	if err := run("mkfs.xfs", "-q", "-m", "reflink=1", image); err != nil {
		return "", nil, err
	}
	if err := run("mount", "-o", "loop", image, mounted); err != nil {
		return "", nil, err
	}
	return mounted, func() error { return syscall.Unmount(mounted, 0) }, nil
}

// partsAt measures at one server.
func (e *env) partsAt(ctx context.Context, t *table, name, address string, keys s3.Credentials) error {
	store, err := s3.New(s3.Config{Settings: map[string]string{"endpoint": address}, Clock: op.NewClock(),
		Credentials: keys})
	if err != nil {
		return err
	}
	var clients []client.Client
	for range partsInFlight {
		c, err := store.Client()
		if err != nil {
			return err
		}
		defer c.Close()
		clients = append(clients, c)
	}
	do := func(c client.Client, r client.Request) error {
		var res client.Result
		if c.Do(ctx, &r, &res); !res.OK() {
			return fmt.Errorf("verb %d of %s: %s %s", r.Verb, r.Object, res.Label(), res.Detail)
		}
		return nil
	}
	bucket := []byte("parts")
	if err := do(clients[0], client.Request{Verb: client.MakeContainer, Container: bucket}); err != nil {
		return err
	}
	arms := []func() error{
		func() error { // single uploads
			failed := make([]error, partsInFlight)
			var wait sync.WaitGroup
			for i, c := range clients {
				wait.Go(func() {
					failed[i] = do(c, client.Request{Verb: client.Put, Container: bucket,
						Object: fmt.Appendf(nil, "single%d", i), Size: objectInParts / partsInFlight, Writer: 1})
				})
			}
			wait.Wait()
			return errors.Join(failed...)
		},
		func() error {
			return do(clients[0], client.Request{Verb: client.PutParts, Container: bucket, Object: []byte("parts"),
				Size: objectInParts, PartSize: partSize, PartConcurrency: partsInFlight, Writer: 1})
		},
	}
	rates := make([][]float64, len(arms))
	for i, order := range mirrored(len(arms), pick(e, max(36, e.blocks), 6)+2, e.seed) {
		for _, arm := range order {
			began := time.Now()
			if err := arms[arm](); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if i > 1 { // the first pair is discarded
				rates[arm] = append(rates[arm], objectInParts/time.Since(began).Seconds())
			}
		}
	}
	r, err := pairedRatio(rates[0], rates[1])
	if err != nil {
		return err
	}
	t.add(fmt.Sprintf("%s: bandwidth of one object in %d parts of 64 MiB in flight / of %d single uploads", name,
		partsInFlight, partsInFlight), fmt.Sprintf("× %.3f [%.3f, %.3f]", r.estimate, r.low, r.high), "≥ × 0.9",
		metIf(r.estimate >= 0.9), len(rates[0]))
	return nil
}
