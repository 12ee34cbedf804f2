// Testbed brings up a real Kubernetes of two nodes on one machine, with the product's CSI drivers behind the upstream
// sidecars; see docs/how-to/testbed.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/api"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/cluster"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/dns"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/registrar"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

const usage = `usage: testbed COMMAND [FLAGS]

  up                  bring up what is missing; with flags, as they say (testbed up -h lists them)
  down                end and undo everything
  status              list parts and nodes; fails unless all is well
  restart PART…       start parts anew, with the flags given; a part is e.g. apiserver, driver-null, csi-provisioner (of
                      every driver), csi-provisioner-null
  stop, start, kill PART   end parts, start them again, end them as a crash does
  kill-node, heal-node NODE   cut a node off the network, put it back
  images              make the images again when the binaries have changed, and give them to the nodes
  product-image       write the product's image: product-image TAR REFERENCE ARCH=FOLDER…
  image               write an image of packages: image TAR REFERENCE FOLDER, which has ARCH/root.tar and ARCH/bin
  push                copy images to a registry, which takes the place of docker.io in their names: push REGISTRY TAR…

The environment variables TESTBED_REPO (default .) and TESTBED_DIR (default $TESTBED_REPO/out/testbed) say where. With
TESTBED_KEEP_AUDIT_LOG, down keeps the audit log of the API server, in the folder log.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// where ip and runc are; su leaves them out
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "testbed:", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	command, args := args[0], args[1:]
	switch command {
	case "registrar":
		return runRegistrar(ctx, args)
	case "dns":
		return runDNS(ctx, args)
	case "product-image":
		return productImage(args)
	case "image":
		return packagesImage(args)
	case "push":
		return push(ctx, args)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	repo := envOr("TESTBED_REPO", ".")
	c, err := cluster.Open(repo, envOr("TESTBED_DIR", filepath.Join(repo, "out/testbed")))
	if err != nil {
		return err
	}
	return onCluster(ctx, c, command, args)
}

func envOr(name, other string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return other
}

// onCluster runs a command. `up` begins with the defaults, so that its flags say all; the others with what the last one
// of them left.
func onCluster(ctx context.Context, c *cluster.Cluster, command string, args []string) error {
	if command != "up" {
		if _, err := c.LoadSettings(); err != nil {
			return err
		}
	}
	names, err := c.Settings.Parse(command, args)
	if err != nil {
		return err
	}
	if command == "status" {
		well, err := c.Status(ctx, os.Stdout)
		if err == nil && !well {
			err = errors.New("not all is well")
		}
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("network namespaces, mounts and cgroups need root")
	}
	unlock, err := c.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	switch command {
	case "up":
		began := time.Now()
		if err := c.Up(ctx); err != nil {
			return err
		}
		fmt.Printf("the test bed is up (%v)\nexport KUBECONFIG=%s\n", time.Since(began).Round(100*time.Millisecond),
			c.Kubeconfig("admin"))
		return nil
	case "down":
		return c.Down(ctx)
	case "images":
		return c.Images(ctx)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: of what? See testbed help", command)
	}
	if command == "restart" {
		return c.Restart(ctx, names...)
	}
	do := map[string]func(string) error{
		"start":     func(name string) error { return c.Start(ctx, name) },
		"stop":      c.Stop,
		"kill":      c.Kill,
		"kill-node": c.KillNode,
		"heal-node": c.HealNode,
	}[command]
	if do == nil {
		return fmt.Errorf("there is no command %q\n%s", command, usage)
	}
	for _, name := range names {
		if err := do(name); err != nil {
			return err
		}
	}
	return nil
}

func runRegistrar(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("registrar", flag.ContinueOnError)
	dir := f.String("dir", "", "folder that the kubelet watches")
	var drivers []registrar.Driver
	f.Func("driver", "SHORT=NAME=SOCKET; repeatable", func(text string) error {
		fields := strings.SplitN(text, "=", 3)
		if len(fields) != 3 {
			return fmt.Errorf("%q is not SHORT=NAME=SOCKET", text)
		}
		drivers = append(drivers, registrar.Driver{Short: fields[0], Name: fields[1], Endpoint: fields[2]})
		return nil
	})
	if err := f.Parse(args); err != nil {
		return err
	}
	return registrar.Serve(ctx, *dir, drivers)
}

func runDNS(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("dns", flag.ContinueOnError)
	pki := f.String("pki", "", "folder of the certificates")
	listen := f.String("listen", "", "address")
	if err := f.Parse(args); err != nil {
		return err
	}
	client, err := api.New(settings.Server(), *pki, "admin")
	if err != nil {
		return err
	}
	return dns.New(client).Serve(ctx, *listen)
}

// productImage writes the product's image for each architecture of which there is a folder with binaries.
func productImage(args []string) error {
	if len(args) < 3 {
		return errors.New("product-image TAR REFERENCE ARCH=FOLDER…")
	}
	var images []image.Image
	for _, arg := range args[2:] {
		arch, folder, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCH=FOLDER", arg)
		}
		images = append(images, cluster.Product(folder, arch))
	}
	return writeImage(args[0], args[1], images)
}

func writeImage(tar, ref string, images []image.Image) error {
	digest, err := image.Write(tar, ref, images...)
	if err == nil {
		fmt.Println(ref, digest, tar)
	}
	return err
}

// packagesImage writes an image of the packages that a folder has for each architecture.
func packagesImage(args []string) error {
	if len(args) != 3 {
		return errors.New("image TAR REFERENCE FOLDER")
	}
	roots, err := filepath.Glob(filepath.Join(args[2], "*", "root.tar"))
	if err != nil {
		return err
	}
	var images []image.Image
	for _, root := range roots {
		i, err := cluster.Packages(filepath.Dir(root))
		if err != nil {
			return err
		}
		images = append(images, i)
	}
	if len(images) == 0 {
		return fmt.Errorf("%s has no */root.tar", args[2])
	}
	return writeImage(args[0], args[1], images)
}

// push copies images to a registry.
func push(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("push REGISTRY TAR…")
	}
	for _, tar := range args[1:] {
		ref, err := image.Push(ctx, tar, args[0])
		if err != nil {
			return err
		}
		fmt.Println(ref)
	}
	return nil
}
