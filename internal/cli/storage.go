package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/engine/csidriver"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/record"
)

// checkStorage makes sure that dir is a directory. Only the default one need not
// exist: a misspelt one would be made, and another disk be measured.
func checkStorage(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && dir == storageDir():
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--storage-dir %s does not exist: make it, or mount the disk to measure there", dir)
	case err != nil:
		return fmt.Errorf("--storage-dir %s: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("--storage-dir %s: not a directory", dir)
	}
	return nil
}

// storing lists the backends of ours that keep a plan's volumes below the
// storage directory, with the options that their classes give to the driver.
func (f *runFlags) storing(p *plan.Plan) map[string]map[string]string {
	found := map[string]map[string]string{}
	if f.engine == engineKubernetes || f.endpoint != "" {
		return found
	}
	for _, sc := range p.StorageClasses {
		backend, ours := strings.CutSuffix(sc.Provisioner, ".csi.cnsbench.dev")
		if !ours || backend == "null" {
			continue
		}
		if found[backend] == nil {
			found[backend] = map[string]string{}
		}
		maps.Copy(found[backend], sc.Parameters)
	}
	return found
}

// storageRoom is what the storage directory has for volumes.
type storageRoom struct {
	Dir        string `json:"dir"`
	Filesystem string `json:"filesystem"`
	Device     string `json:"device"`
	FreeBytes  int64  `json:"freeBytes"`
	// Pools are the sizes of the images that drivers of ours make, by backend.
	Pools    map[string]int64 `json:"pools,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
}

func roomAt(dir string) (*storageRoom, error) {
	at, err := record.FilesystemOf(dir)
	if err != nil {
		return nil, err
	}
	return &storageRoom{Dir: dir, Filesystem: at.Type, Device: at.Source, FreeBytes: at.Free}, nil
}

// String names the directory, its device, and what is free.
func (r *storageRoom) String() string {
	return fmt.Sprintf("%s (%s on %s, %.1f GiB free)", r.Dir, r.Filesystem, r.Device, float64(r.FreeBytes)/(1<<30))
}

// room says where a plan's volumes will be; nil: not below the storage directory.
func (f *runFlags) room(p *plan.Plan) (*storageRoom, error) {
	backends := f.storing(p)
	if len(backends) == 0 {
		return nil, nil
	}
	r, err := roomAt(f.storage)
	if err != nil {
		return nil, err
	}
	var pools int64
	for _, b := range slices.Sorted(maps.Keys(backends)) {
		if !csidriver.MakesPool(b, r.Filesystem) {
			continue
		}
		size := csidriver.DefaultPoolSize
		if q, err := resource.ParseQuantity(backends[b]["driver.cnsbench.dev/pool-size"]); err == nil {
			size = q.Value()
		}
		if r.Pools == nil {
			r.Pools = map[string]int64{}
		}
		r.Pools[b] = size
		pools += size
	}
	r.compare(p.Budget.Bytes, pools, len(r.Pools) == len(backends))
	return r, nil
}

// compare warns of volumes that together are larger than what holds them.
func (r *storageRoom) compare(wanted, pools int64, allPooled bool) {
	if allPooled && wanted > pools {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the volumes ask for %s, the pool has %s: "+
			"set driver.cnsbench.dev/pool-size in the StorageClass", bytes(wanted), bytes(pools)))
	}
	if wanted > r.FreeBytes {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the volumes ask for %s, %s has %s free: "+
			"take smaller or fewer volumes, or another --storage-dir", bytes(wanted), r.Device, bytes(r.FreeBytes)))
	}
}

// print shows the room below the budget of a dry run.
func (r *storageRoom) print(w io.Writer) {
	fmt.Fprintf(w, "storage: %v\n", r)
	for _, b := range slices.Sorted(maps.Keys(r.Pools)) {
		fmt.Fprintf(w, "pool of %s: %s\n", b, bytes(r.Pools[b]))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
}

// readyStorage checks the storage directory, makes the default one, and says
// which device is measured.
func (f *runFlags) readyStorage(s *streams, p *plan.Plan) error {
	if f.endpoint == "" && f.storage == storageDir() {
		if err := os.MkdirAll(f.storage, 0o755); err != nil {
			return failed(fmt.Errorf("storage directory: %w (choose another with --storage-dir)", err))
		}
	}
	if len(f.storing(p)) == 0 {
		return nil
	}
	r, err := roomAt(f.storage)
	if err != nil {
		return failed(err)
	}
	w := s.out
	if f.output == "json" {
		w = s.err
	}
	fmt.Fprintf(w, "storage: %v\n", r)
	return nil
}

func storageFinding(dir string) finding {
	const what = "storage directory"
	if err := checkStorage(dir); err != nil {
		return finding{what, false, true, err.Error()}
	}
	r, err := roomAt(dir)
	if err != nil {
		return finding{what, false, true, err.Error()}
	}
	at := record.Existing(dir)
	if unix.Access(at, unix.W_OK) != nil {
		return finding{what, false, true, fmt.Sprintf("%s: %s is not writable; choose another with --storage-dir", dir, at)}
	}
	detail := r.String()
	if at != dir {
		detail += ", made by the first run"
	}
	return finding{what, true, true, detail}
}
