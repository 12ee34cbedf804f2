package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/machine"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// Images by the name of their tar.
const (
	PauseImage   = "localhost/pause:1"
	ProductImage = "localhost/cnsbench:dev"
	ToolsImage   = "localhost/cnsbench-tools:test"
	// publishedTools is what the product calls the image of its library's programs beside ProductImage, but for the
	// version.
	publishedTools = "localhost/workload-tools:"
)

// tools are the programs of the image for workloads.
var tools = []string{
	"fio", "dash", "bash", "sed", "grep", "find", "xargs", "tar",
	"basename", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname", "du", "echo", "env", "expr", "false", "head", "hostname", "id",
	"ln", "ls", "md5sum", "mkdir", "mkfifo", "mktemp", "mv", "nproc", "od", "printf", "pwd", "readlink", "realpath", "rm", "rmdir", "seq", "sha256sum",
	"sleep", "sort", "stat", "sync", "tail", "tee", "test", "timeout", "touch", "tr", "true", "truncate", "tty", "uname", "uniq", "wc", "whoami", "yes",
	"mount", "umount", "findmnt", "lsblk", "blockdev", "ps",
}

// Product is the product's image of one architecture, from a folder with its binaries.
func Product(bin, arch string) image.Image {
	files := append(image.Users(), image.Certificates()...)
	files = append(files, image.File{Path: "/cnsbench", From: filepath.Join(bin, "cnsbench")},
		image.File{Path: "/cnsbench-agent", From: filepath.Join(bin, "cnsbench-agent")})
	return image.Image{Arch: arch, Files: files, Config: v1.Config{
		Entrypoint: []string{"/cnsbench"}, User: "65532:65532", WorkingDir: "/tmp", Env: []string{"PATH=/",
			"HOME=/tmp"}}}
}

// Packages is the image of one architecture of packages, from a folder that is named like the architecture, with their
// file system in root.tar and further programs in bin.
func Packages(dir string) (image.Image, error) {
	files := append(image.Users(), image.File{Path: "/usr/bin/awk", Link: "mawk"})
	programs, err := filepath.Glob(filepath.Join(dir, "bin", "*"))
	for _, p := range programs {
		files = append(files, image.File{Path: "/usr/bin/" + filepath.Base(p), From: p})
	}
	return image.Image{Arch: filepath.Base(dir), Root: filepath.Join(dir, "root.tar"), Files: files, Config: v1.Config{
		Cmd: []string{"/bin/sh"}, User: "65532:65532", Env: []string{"HOME=/tmp", "PATH=/usr/lib/postgresql/15/bin:" +
			"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}}, err
}

func toolsImage() (image.Image, error) {
	present := slices.DeleteFunc(slices.Clone(tools),
		func(name string) bool { _, err := exec.LookPath(name); return err != nil })
	files, err := image.Programs(present...)
	files = append(append(files, image.Users()...), image.File{Path: "/bin", Link: "usr/bin"},
		image.File{Path: "/usr/bin/sh", Link: "dash"}, image.File{Path: "/root", Folder: true})
	return image.Image{Arch: runtime.GOARCH, Files: merged(files), Config: v1.Config{
		Cmd: []string{"/bin/sh"}, Env: []string{"PATH=/usr/bin", "HOME=/tmp"}}}, err
}

// merged moves libraries from /lib to /usr/lib with links in their place, as Debian has it: a folder cannot be a link
// too.
func merged(files []image.File) []image.File {
	var moved []image.File
	for _, f := range files {
		for _, dir := range []string{"/lib/", "/lib64/"} {
			if strings.HasPrefix(f.Path, dir) {
				f.Path = "/usr" + f.Path
			}
		}
		moved = append(moved, f)
	}
	return append(moved, image.File{Path: "/lib", Link: "usr/lib"}, image.File{Path: "/lib64", Link: "usr/lib64"})
}

// digests keeps which image each tar holds, and which each node has.
type digests map[string]string

func (c *Cluster) digestsFile() string { return c.Path("images", "digests.json") }

func (c *Cluster) loadDigests() (digests, error) {
	d := digests{}
	text, err := os.ReadFile(c.digestsFile())
	if errors.Is(err, os.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	return d, json.Unmarshal(text, &d)
}

func (c *Cluster) saveDigests(d digests) error {
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.digestsFile(), append(text, '\n'), 0o644)
}

// tars are the images by their tars. Those of applications are made where these are installed (make workload-servers).
func (c *Cluster) tars() map[string]string {
	all := map[string]string{"pause": PauseImage, "cnsbench": ProductImage, "tools": ToolsImage}
	for name, a := range applications {
		if a.installed() {
			all[name] = a.image
		}
	}
	return all
}

func (c *Cluster) tar(name string) string { return c.Path("images", name+".tar") }

// makeImages makes the tars whose contents have changed.
func (c *Cluster) makeImages(ctx context.Context) error {
	if err := os.MkdirAll(c.Path("images"), 0o755); err != nil {
		return err
	}
	if err := c.buildPause(ctx); err != nil {
		return err
	}
	kept, err := c.loadDigests()
	if err != nil {
		return err
	}
	type source struct {
		from []string
		make func() (image.Image, error)
	}
	all := map[string]source{
		"pause": {[]string{c.Bin("pause")}, func() (image.Image, error) {
			return image.Image{Arch: runtime.GOARCH, Files: []image.File{{Path: "/pause", From: c.Bin("pause")}},
				Config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}}, nil
		}},
		"cnsbench": {[]string{c.Bin("cnsbench"), c.Bin("cnsbench-agent")}, func() (image.Image, error) {
			return Product(c.Path("bin"), runtime.GOARCH), nil
		}},
		// What Debian brings changes with its packages only; fio stands for them, this program for the list.
		"tools": {[]string{"/usr/bin/fio", c.Bin("testbed")}, toolsImage},
	}
	for name, a := range applications {
		if a.installed() {
			all[name] = source{[]string{a.program, c.Bin("testbed")}, a.make}
		}
	}
	for name, made := range all {
		if err := c.makeImage(kept, name, made.from, made.make); err != nil {
			return err
		}
	}
	return c.saveDigests(kept)
}

func (c *Cluster) makeImage(kept digests, name string, from []string, make func() (image.Image, error)) error {
	sources := ""
	for _, f := range from {
		sum, err := digest(f)
		if err != nil {
			return err
		}
		sources += sum
	}
	if _, err := os.Stat(c.tar(name)); err == nil && kept[name+" sources"] == sources {
		return nil
	}
	i, err := make()
	if err != nil {
		return err
	}
	kept[name], err = image.Write(c.tar(name), c.tars()[name], i)
	kept[name+" sources"] = sources
	fmt.Println("made the image", c.tars()[name])
	return err
}

func (c *Cluster) buildPause(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", c.Bin("pause"), "./pause")
	cmd.Dir = filepath.Join(c.Repo, "hack/testbed")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building pause: %w: %s", err, out)
	}
	return nil
}

// importImages gives each node the images that it does not have yet.
func (c *Cluster) importImages(context.Context) error {
	kept, err := c.loadDigests()
	if err != nil {
		return err
	}
	for _, n := range settings.Nodes() {
		has, err := c.ctr(n, "images", "list", "-q")
		if err != nil {
			return err
		}
		for name, ref := range c.tars() {
			key := name + " on " + n.Name
			if kept[key] == kept[name] && slices.Contains(strings.Fields(has), ref) {
				continue
			}
			if _, err := c.ctr(n, "images", "import", c.tar(name)); err != nil {
				return err
			}
			fmt.Println(n.Name, "has", ref)
			kept[key] = kept[name]
		}
		if err := c.publishTools(n); err != nil {
			return err
		}
	}
	return c.saveDigests(kept)
}

// publishTools gives the tools on a node the name by which the product of now asks for them, so that a Benchmark need
// not name an image. Names of other versions stay: several may be at work.
func (c *Cluster) publishTools(n settings.Node) error {
	text, err := machine.Run(c.Bin("cnsbench"), "version", "--output", "json")
	if err != nil {
		return err
	}
	var said struct{ Cnsbench string }
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return err
	}
	_, err = c.ctr(n, "images", "tag", "--force", ToolsImage, publishedTools+said.Cnsbench)
	return err
}

func (c *Cluster) ctr(n settings.Node, args ...string) (string, error) {
	return machine.Run(append([]string{c.Bin("ctr"), "--address", c.Containerd(n), "--namespace", "k8s.io"},
		args...)...)
}

// Images makes the images and gives them to the nodes, without touching anything that runs.
func (c *Cluster) Images(ctx context.Context) error {
	return errors.Join(c.copyProduct(ctx), c.makeImages(ctx), c.importImages(ctx))
}
