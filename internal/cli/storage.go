package cli

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/storagedir"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// room describes where the volumes of a plan will be; nil: not below the storage directory.
func (f *runFlags) room(p *plan.Plan) (*storagedir.Room, error) {
	if !f.usesStorageDir(p) {
		return nil, nil
	}
	return storagedir.Of(p, f.StorageDir)
}

// prepareStorage creates the default storage directory and prints which device is measured.
func (f *runFlags) prepareStorage(s *streams, p *plan.Plan) error {
	builtIn := func(sc storagev1.StorageClass) bool { return p.Endpoints[sc.Provisioner] == "" }
	if f.StorageDir == storagedir.Default() && slices.ContainsFunc(slices.Collect(maps.Values(p.StorageClasses)), builtIn) {
		if err := storagedir.Make(); err != nil {
			return failed(err)
		}
	}
	r, err := f.room(p)
	if err != nil {
		return failed(err)
	}
	if r == nil {
		return nil
	}
	w := s.out
	if forPrograms(f.output) {
		w = s.err
	}
	visible.Fprintf(w, "storage: %v\n", r)
	return nil
}

func storageFinding(dir string) finding {
	const what = "storage directory"
	if err := storagedir.Check(dir); err != nil {
		return finding{what, false, true, err.Error()}
	}
	r, err := storagedir.At(dir)
	if err != nil {
		return finding{what, false, true, err.Error()}
	}
	at := bundle.ExistingParent(dir)
	if unix.Access(at, unix.W_OK) != nil {
		return finding{what, false, true, fmt.Sprintf("%s: %s is not writable; choose another with --storage-dir", dir,
			at)}
	}
	detail := r.String()
	if at != dir {
		detail += ", created by the first run"
	}
	return finding{what, true, true, detail}
}
