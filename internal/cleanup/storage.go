package cleanup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Storage removes the directories of drivers below a storage directory. It leaves those alone that a driver has
// locked, and returns them in inUse.
func Storage(dir string) (removed int, inUse []string, err error) {
	runs, err := os.ReadDir(dir)
	if err != nil {
		return 0, nil, err
	}
	var errs []error
	for _, run := range runs {
		path := filepath.Join(dir, run.Name())
		backends, err := os.ReadDir(path)
		if err != nil || !slices.ContainsFunc(backends, isBackend) {
			continue // not of a run
		}
		if err := owned.Marked(path, run.Name()); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, b := range backends {
			if !isBackend(b) {
				continue
			}
			base := filepath.Join(path, b.Name())
			switch err := csidriver.Destroy(csidriver.Options{Backend: b.Name(), BaseDir: base}); {
			case errors.Is(err, csidriver.ErrInUse):
				inUse = append(inUse, base)
			case err != nil:
				errs = append(errs, err)
			default:
				removed++
				_ = os.Remove(base)
			}
		}
		_ = owned.RemoveMarked(path)
	}
	return removed, inUse, errors.Join(errs...)
}

func isBackend(e os.DirEntry) bool {
	return e.IsDir() && slices.Contains(csidriver.Backends(), e.Name())
}
