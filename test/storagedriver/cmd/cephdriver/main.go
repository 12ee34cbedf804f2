// Command cephdriver serves the test drivers for CephFS and RBD in front of a Ceph that make ceph-up has made: sockets
// cephfs.sock and rbd.sock in its directory, logs truth/cephfs.jsonl and truth/rbd.jsonl.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/test/storagedriver/ceph"
	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

func main() {
	dir := flag.String("dir", "", "the `directory` of make ceph-up")
	freeze := flag.Bool("freeze", true, "freeze the file system of a mounted RBD volume for a snapshot; ceph-csi does not")
	unstage := flag.Bool("unstage-all", false, "unmount and detach every volume of this machine, and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *dir, *freeze, *unstage); err != nil {
		fmt.Fprintln(os.Stderr, "cephdriver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, freeze, unstage bool) error {
	clusters, err := ceph.NewClusters(filepath.Join(dir, "ceph.conf"), filepath.Join(dir, "csi-config.json"))
	if err != nil {
		return err
	}
	nodeDir := filepath.Join(dir, "node")
	if err := os.MkdirAll(nodeDir, 0o700); err != nil {
		return err
	}
	rbdNode := ceph.NewRBDNode(clusters, nodeDir, freeze)
	if unstage {
		return rbdNode.UnstageAll()
	}
	if err := rbdNode.Recover(); err != nil {
		return err
	}
	cephfs := ceph.NewCephFS(clusters)
	group, ctx := errgroup.WithContext(ctx)
	for _, d := range []csikit.Driver{
		{Identity: csikit.Identity{Name: ceph.CephFSName, Version: ceph.Version}, Controller: cephfs,
			Node: ceph.NewCephFSNode(cephfs, nodeDir), Socket: filepath.Join(dir, "cephfs.sock"),
			Log: filepath.Join(dir, "truth", "cephfs.jsonl")},
		{Identity: csikit.Identity{Name: ceph.RBDName, Version: ceph.Version}, Controller: ceph.NewRBD(clusters, rbdNode),
			Node: rbdNode, Socket: filepath.Join(dir, "rbd.sock"), Log: filepath.Join(dir, "truth", "rbd.jsonl")},
	} {
		group.Go(func() error { return d.Serve(ctx) })
	}
	return group.Wait()
}
