package image

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestParseLdd(t *testing.T) {
	const out = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
	want := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if got := parseLdd(out); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := parseLdd("\tnot a dynamic executable\n"); len(got) != 0 {
		t.Errorf("a static program loads %q", got)
	}
}

func TestLayerHasFoldersOnceAndInOrder(t *testing.T) {
	var layer bytes.Buffer
	files := []File{{Path: "/b/c/d", Text: "x"}, {Path: "/b/a", Link: "c/d"},
		{Path: "/tmp", Folder: true, Mode: 0o1777}}
	if err := writeLayer(&layer, files); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&layer); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Name+" "+os.FileMode(h.Mode).String()+" "+h.Linkname)
	}
	want := []string{"b/ -rwxr-xr-x ", "b/a -rwxrwxrwx c/d", "b/c/ -rwxr-xr-x ", "b/c/d -rw-r--r-- ",
		"tmp/ " + os.FileMode(0o1777).String() + " "}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestSameFilesMakeTheSameImage(t *testing.T) {
	var digests, contents []string
	for range 2 {
		to := filepath.Join(t.TempDir(), "i.tar")
		d, err := Write(to, "localhost/x:1", Image{Arch: "amd64", Files: Users()}, Image{Arch: "arm64", Files: Users()})
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("tar", "-xOf", to, "index.json").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		digests, contents = append(digests, d), append(contents, string(out))
	}
	if digests[0] != digests[1] || contents[0] != contents[1] {
		t.Errorf("two images of the same files differ: %v", digests)
	}
	for _, want := range []string{digests[0], "localhost/x:1"} {
		if !strings.Contains(contents[0], want) {
			t.Errorf("index.json lacks %s: %s", want, contents[0])
		}
	}
}

// TestPush pushes images to a registry: what it has is what the tar has, both architectures, and their file system.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	root := t.TempDir()
	for name, text := range map[string]string{"usr/bin/a": "program", "usr/share/man/a.1": "page",
		"usr/share/doc/a/copyright": "GPL", "usr/share/doc/a/README": "text", "dev/x": "device"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rootTar, to := filepath.Join(t.TempDir(), "root.tar"), filepath.Join(t.TempDir(), "i.tar")
	if out, err := exec.Command("tar", "-C", root, "-cf", rootTar, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var images []Image
	for _, arch := range []string{"amd64", "arm64"} {
		images = append(images, Image{Arch: arch, Root: rootTar, Files: Users()})
	}
	digest, err := Write(to, "docker.io/cnsbench/x:1.2", images...)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://") + "/storage"
	at := host + "/cnsbench/x"
	if pushed, err := Push(t.Context(), to, host); err != nil || pushed != at+"@"+digest {
		t.Fatalf("pushed %s, %v; want %s@%s", pushed, err, at, digest)
	}
	ref, err := name.ParseReference(at + ":1.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		r := mutate.Extract(image)
		for in := tar.NewReader(r); ; {
			h, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				files = append(files, h.Name)
			}
		}
		r.Close()
		slices.Sort(files)
		want := []string{"etc/group", "etc/passwd", "usr/bin/a", "usr/share/doc/a/copyright"}
		if !slices.Equal(files, want) {
			t.Errorf("%s has %q, want %q", arch, files, want)
		}
	}
	if _, err := Push(t.Context(), rootTar, host); err == nil {
		t.Error("a tar without an index is pushed")
	}
	if _, err := Push(t.Context(), to, "not a registry"); err == nil {
		t.Error("a wrong registry is taken")
	}
}
