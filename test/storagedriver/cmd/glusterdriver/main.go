// Command glusterdriver serves the test driver for GlusterFS in front of the volumes that make gluster-up has made: the
// socket gluster.sock in its directory, the log truth/gluster.jsonl.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
	"github.com/cnsbench/cnsbench/test/storagedriver/gluster"
)

func main() {
	dir := flag.String("dir", "", "the `directory` of make gluster-up")
	server := flag.String("server", "", "the `address` of glusterd")
	unstage := flag.Bool("unstage-all", false, "unmount every volume of this machine, and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, filepath.Clean(*dir), *server, *unstage); err != nil {
		fmt.Fprintln(os.Stderr, "glusterdriver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, server string, unstage bool) error {
	controller := &gluster.Controller{Mounts: filepath.Join(dir, "mnt")}
	node := gluster.NewNode(controller, server, filepath.Join(dir, "run"), filepath.Join(dir, "log", "clients.log"))
	if unstage {
		return node.UnstageAll()
	}
	return csikit.Driver{Identity: csikit.Identity{Name: gluster.Name, Version: "cnsbench-test"}, Controller: controller,
		Node: node, Socket: filepath.Join(dir, "gluster.sock"), Log: filepath.Join(dir, "truth", "gluster.jsonl"),
	}.Serve(ctx)
}
