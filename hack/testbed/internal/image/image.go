// Package image makes container images without a container engine: from files of this machine, into a tar of the OCI
// image
// layout that `ctr images import` and others take. The same files make the same image, byte for byte.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is a file of an image: copied from this machine, or given, or a link, or a folder.
type File struct {
	Path   string // in the image, absolute
	From   string // a file of this machine
	Text   string
	Link   string // the target of a symbolic link
	Folder bool
	Mode   int64 // default 0644, of folders and of files From 0755
}

// Image is an image of one architecture.
type Image struct {
	Arch   string // as Go calls it
	Root   string // a tar of the file system below Files, which dpkg unpacked; empty: none
	Files  []File
	Config v1.Config
}

// nameAnnotation is what containerd names an image by.
const nameAnnotation = "io.containerd.image.name"

// Write writes images of one reference, an architecture each, as a tar of the OCI layout; it returns the digest of
// their index.
func Write(to, ref string, images ...Image) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		built, err := i.build()
		if err != nil {
			return "", fmt.Errorf("making the image %s for %s: %w", ref, i.Arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: i.Arch}}})
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), ".image-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	_, tag, _ := strings.Cut(ref, ":")
	// Others name an image by the second annotation.
	if err := p.AppendIndex(index, layout.WithAnnotations(map[string]string{
		nameAnnotation: ref, "org.opencontainers.image.ref.name": tag})); err != nil {
		return "", err
	}
	if err := pack(dir, to+".new"); err != nil {
		return "", err
	}
	return digest.String(), os.Rename(to+".new", to)
}

func (i Image) build() (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var err error
	if i.Root != "" {
		image, err = withLayer(image, func(w io.Writer) error { return copyRoot(w, i.Root) })
	}
	if err == nil {
		image, err = withLayer(image, func(w io.Writer) error { return writeLayer(w, i.Files) })
	}
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = "linux", i.Arch, i.Config
	return mutate.ConfigFile(image, config)
}

// withLayer adds a layer that write writes as a tar.
func withLayer(image v1.Image, write func(io.Writer) error) (v1.Image, error) {
	var layer bytes.Buffer
	if err := write(&layer); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil }
	l, err := tarball.LayerFromOpener(open,
		tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, l)
}

// unused are folders of a file system that no program of an image needs. The copyright of each package stays.
var unused = []string{"dev/", "var/cache/", "var/lib/apt/", "var/log/", "usr/share/man/", "usr/share/info/",
	"usr/share/locale/", "usr/share/lintian/"}

func isUnused(h *tar.Header) bool {
	if strings.HasPrefix(h.Name, "usr/share/doc/") && h.Typeflag == tar.TypeReg {
		return path.Base(h.Name) != "copyright"
	}
	return slices.ContainsFunc(unused, func(dir string) bool { return strings.HasPrefix(h.Name, dir) })
}

// copyRoot copies a file system without what is unused, each file with the same time.
func copyRoot(w io.Writer, root string) error {
	in, err := os.Open(root)
	if err != nil {
		return err
	}
	defer in.Close()
	t := tar.NewWriter(w)
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if err == io.EOF {
			return t.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", root, err)
		}
		h.Name = strings.TrimPrefix(h.Name, "./")
		if h.Name == "" || isUnused(h) {
			continue
		}
		h.ModTime, h.AccessTime, h.ChangeTime, h.Format = time.Time{}, time.Time{}, time.Time{}, tar.FormatPAX
		h.Uname, h.Gname, h.PAXRecords = "", "", nil
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %s: %w", root, h.Name, err)
		}
		if _, err := io.Copy(t, r); err != nil {
			return fmt.Errorf("%s: %s: %w", root, h.Name, err)
		}
	}
}

// writeLayer writes the files in the order of their paths, with the folders that hold them.
func writeLayer(w io.Writer, files []File) error {
	all := map[string]File{}
	for _, f := range files {
		all[f.Path] = f
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = File{Path: dir, Folder: true}
			}
		}
	}
	t := tar.NewWriter(w)
	for _, f := range slices.SortedFunc(mapValues(all),
		func(a, b File) int { return strings.Compare(a.Path, b.Path) }) {
		if err := f.write(t); err != nil {
			return err
		}
	}
	return t.Close()
}

func mapValues(m map[string]File) func(func(File) bool) {
	return func(yield func(File) bool) {
		for _, f := range m {
			if !yield(f) {
				return
			}
		}
	}
}

func (f File) write(t *tar.Writer) error {
	h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Format: tar.FormatPAX}
	text := []byte(f.Text)
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	case f.Folder:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case f.From != "":
		var err error
		if text, err = os.ReadFile(f.From); err != nil {
			return err
		}
	}
	if h.Mode == 0 {
		h.Mode = 0o644
		if f.Folder || f.From != "" {
			h.Mode = 0o755
		}
	}
	h.Size = int64(len(text))
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(text)
	return err
}

// pack writes a folder as a tar.
func pack(dir, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	t := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		return (File{Path: name, From: p, Mode: 0o644}).write(t)
	})
	if err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return out.Close()
}
