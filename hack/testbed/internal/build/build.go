// Package build builds what a test bed runs from Go modules that pin it, and keeps the binaries: as long as a module's
// go.mod, go.sum and flags stay the same, nothing is built again.
package build

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Module is a folder with a go.mod and the programs built from it.
type Module struct {
	Name string
	// Folder, when set, is where it is, below the folder of all; else it has the module's name.
	Folder   string
	Programs map[string]Program // by name
	// Extra, when set, runs after the build, in the module's folder, and brings further files to bin.
	Extra func(ctx context.Context, folder, bin string) error
}

// Program is a package to build, and what the linker is told.
type Program struct{ Package, LDFlags string }

const kubernetes = "v1.36.3"

// Modules are all that is built. Versions are those of their go.mod files; here are only those that programs want told.
func Modules() []Module {
	const csi = "github.com/kubernetes-csi/external-"
	component := "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" +
		" -X k8s.io/component-base/version.gitVersion=" + kubernetes +
		" -X k8s.io/client-go/pkg/version.gitVersion=" + kubernetes
	sidecar := func(path, version string) Program { return Program{csi + path, "-X main.version=" + version} }
	return []Module{
		{Name: "etcd", Programs: map[string]Program{"etcd": {Package: "go.etcd.io/etcd/server/v3"}}},
		{Name: "containerd", Programs: programs("github.com/containerd/containerd/v2/cmd/", "", "containerd", "ctr",
			"containerd-shim-runc-v2")},
		{Name: "kubernetes", Programs: programs("k8s.io/kubernetes/cmd/", component,
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")},
		{Name: "sidecars", Extra: crds("github.com/kubernetes-csi/external-snapshotter/client/v8", "*snapshot*.yaml"), Programs: map[string]Program{
			"csi-provisioner":     sidecar("provisioner/v6/cmd/csi-provisioner", "v6.3.0"),
			"csi-attacher":        sidecar("attacher/v4/cmd/csi-attacher", "v4.13.0"),
			"csi-resizer":         sidecar("resizer/v2/cmd/csi-resizer", "v2.3.0"),
			"csi-snapshotter":     sidecar("snapshotter/v8/cmd/csi-snapshotter", "v8.7.0"),
			"snapshot-controller": sidecar("snapshotter/v8/cmd/snapshot-controller", "v8.7.0"),
		}},
		{Name: "cosi", Extra: crds("sigs.k8s.io/container-object-storage-interface/client", "*.yaml"),
			Programs: map[string]Program{"cosi-controller": {Package: "./controller"}, "cosi-sidecar": {Package: "./sidecar"},
				"cosi-driver": {Package: "./driver"}}},
		// The one that tests of object storage meet too.
		{Name: "servers", Folder: "../../servers",
			Programs: programs("github.com/versity/versitygw/cmd/", "", "versitygw")},
	}
}

func programs(prefix, ldflags string, names ...string) map[string]Program {
	all := map[string]Program{}
	for _, name := range names {
		all[name] = Program{prefix + name, ldflags}
	}
	return all
}

// Missing lists the modules whose binaries in bin are not there or not of now.
func Missing(root, bin string) ([]Module, error) {
	var missing []Module
	for _, m := range Modules() {
		key, err := m.key(m.folder(root))
		if err != nil {
			return nil, err
		}
		if !m.built(bin, key) {
			missing = append(missing, m)
		}
	}
	return missing, nil
}

func (m Module) folder(root string) string { return filepath.Join(root, cmp.Or(m.Folder, m.Name)) }

// key is a digest of what the binaries depend on: the module's files and, where programs are its own, their source.
func (m Module) key(folder string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), m.Programs)
	files := []string{filepath.Join(folder, "go.mod"), filepath.Join(folder, "go.sum")}
	source, err := filepath.Glob(filepath.Join(folder, "*/*.go"))
	if err != nil {
		return "", err
	}
	for _, name := range append(files, source...) {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func (m Module) keyFile(bin string) string { return filepath.Join(bin, "."+m.Name+".key") }

func (m Module) built(bin, key string) bool {
	kept, err := os.ReadFile(m.keyFile(bin))
	if err != nil || strings.TrimSpace(string(kept)) != key {
		return false
	}
	for name := range m.Programs {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return false
		}
	}
	return true
}

// Build builds one module's programs into bin. The go command's output goes to log.
func (m Module) Build(ctx context.Context, root, bin string, log io.Writer) error {
	folder := m.folder(root)
	began := time.Now()
	key, err := m.key(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for name, p := range m.Programs {
		// Beside first: a running program's file cannot be written to, but it can be replaced.
		fresh := filepath.Join(bin, "."+name+".new")
		cmd := exec.CommandContext(ctx, "nice", "go", "build", "-trimpath", "-ldflags",
			strings.TrimSpace("-s -w "+p.LDFlags), "-o", fresh, p.Package)
		cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building %s (%s in %s): %w", name, p.Package, folder, err)
		}
		if err := os.Rename(fresh, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	if m.Extra != nil {
		if err := m.Extra(ctx, folder, bin); err != nil {
			return fmt.Errorf("building %s: %w", m.Name, err)
		}
	}
	fmt.Fprintf(log, "built %s in %v\n", m.Name, time.Since(began).Round(time.Second))
	return os.WriteFile(m.keyFile(bin), []byte(key+"\n"), 0o644)
}

// crds copies the custom resources from the module that brings them, those of a pattern.
func crds(module, pattern string) func(ctx context.Context, folder, bin string) error {
	return func(ctx context.Context, folder, bin string) error {
		cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("finding the custom resources of %s: %w", module, err)
		}
		dir := strings.TrimSpace(string(out))
		files, err := filepath.Glob(filepath.Join(dir, "config/crd", pattern))
		if err != nil || len(files) == 0 {
			return errors.Join(err, fmt.Errorf("there are no custom resources %s in %s", pattern, dir))
		}
		return copyTo(filepath.Join(bin, "crd"), files)
	}
}

func copyTo(dir string, files []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), approved(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// approved returns a custom resource with the annotation that the API server demands in groups of Kubernetes. The files
// of COSI's module lack it.
func approved(crd []byte) []byte {
	const key = "api-approved.kubernetes.io:"
	if bytes.Contains(crd, []byte(key)) {
		return crd
	}
	const annotations = "\n  annotations:\n"
	return bytes.Replace(crd, []byte(annotations), []byte(annotations+"    "+key+" unapproved, test bed only\n"), 1)
}
