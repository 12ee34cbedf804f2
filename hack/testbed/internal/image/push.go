package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push copies the images of a tar that Write wrote to a registry, which takes the place of docker.io in their name, with
// the credentials of ~/.docker/config.json or $REGISTRY_AUTH_FILE. It returns the reference with the digest of their
// index. A registry on loopback is asked by HTTP.
func Push(ctx context.Context, from, registry string) (string, error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := unpack(from, dir); err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	if len(manifest.Manifests) != 1 {
		return "", fmt.Errorf("%s has %d indexes, want 1", from, len(manifest.Manifests))
	}
	digest, named := manifest.Manifests[0].Digest, manifest.Manifests[0].Annotations[nameAnnotation]
	ref, err := name.NewTag(registry+"/"+strings.TrimPrefix(named, "docker.io/"), name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	index, err := top.ImageIndex(digest)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	keys := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), keys); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	return ref.Context().Digest(digest.String()).String(), nil
}

// unpack unpacks the regular files of a tar into a folder.
func unpack(from, dir string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case !filepath.IsLocal(h.Name):
			return fmt.Errorf("%q is outside of the tar", h.Name)
		case h.Typeflag != tar.TypeReg:
			continue
		}
		to := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}
