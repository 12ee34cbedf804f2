package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
