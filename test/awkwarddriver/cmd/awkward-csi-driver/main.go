// awkward-csi-driver serves the awkward CSI driver for tests on a unix socket: see package awkwarddriver.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "awkward-csi-driver:", err)
		os.Exit(1)
	}
}

func run() error {
	c := awkwarddriver.Config{Nodes: map[string]string{}}
	c.Options.Flags(flag.CommandLine)
	socket := flag.String("socket", "", "unix `socket` to serve on")
	left := flag.Bool("left", false, "list what the driver that serves on the socket has, and end")
	flag.StringVar(&c.BaseDir, "base-dir", "", "`directory` of the driver's state")
	flag.StringVar(&c.Log, "log", "", "`file` to which one JSON line per call is appended")
	flag.StringVar(&c.Inject, "inject", "", "delays and errors: a `file`, or YAML")
	flag.Uint64Var(&c.Seed, "seed", 0, "seed of the injection")
	flag.StringVar(&c.NodeID, "node-id", "local", "name of the node")
	flag.Func("node", "`id=socket` of a further node; may be repeated", func(s string) error {
		id, path, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("want id=socket")
		}
		c.Nodes[id] = path
		return nil
	})
	flag.Parse()
	if *socket == "" || c.BaseDir == "" && !*left {
		return errors.New("want -socket and -base-dir")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *left {
		ids, err := awkwarddriver.Left(ctx, *socket)
		for _, id := range ids {
			fmt.Println(id)
		}
		return err
	}
	d, err := awkwarddriver.New(c)
	if err != nil {
		return err
	}
	return errors.Join(d.Serve(ctx, *socket), d.Close())
}
