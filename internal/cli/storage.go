package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/plan"
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

// storing lists the StorageClasses of a plan whose volumes a driver in the box keeps
// below the storage directory, by name.
func (f *runFlags) storing(p *plan.Plan) []classRoom {
	var list []classRoom
	if f.engine == engineKubernetes || f.endpoint != "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.StorageClasses)) {
		backend, ours := strings.CutSuffix(p.StorageClasses[name].Provisioner, ".csi.cnsbench.dev")
		if !ours || backend == "null" {
			continue
		}
		asked := p.Budget.Classes[name]
		list = append(list, classRoom{StorageClass: name, Backend: backend, Volumes: asked.Volumes, Bytes: asked.Bytes,
			AtLeast: len(p.Budget.Open) > 0})
	}
	return list
}

// classRoom is what the volumes of a StorageClass ask for.
type classRoom struct {
	StorageClass string `json:"storageClass"`
	Backend      string `json:"backend"`
	Volumes      int64  `json:"volumes"`
	Bytes        int64  `json:"bytes"`
	// PoolBytes is the size of the image that has them; 0: none does. Classes of
	// one backend share one.
	PoolBytes int64 `json:"poolBytes,omitempty"`
	// AtLeast: a rate without an end makes more.
	AtLeast bool `json:"atLeast,omitempty"`
}

func (c classRoom) String() string {
	atLeast := ""
	if c.AtLeast {
		atLeast = "at least "
	}
	text := fmt.Sprintf("StorageClass %s (%s): %s%s, %s requested", c.StorageClass, c.Backend, atLeast,
		count(int(c.Volumes), "volume"), bytes(c.Bytes))
	if c.PoolBytes > 0 {
		text += fmt.Sprintf(", from a pool of %s", bytes(c.PoolBytes))
	}
	return text
}

// storageRoom is what the storage directory has for volumes.
type storageRoom struct {
	Dir        string `json:"dir"`
	Filesystem string `json:"filesystem"`
	Device     string `json:"device"`
	FreeBytes  int64  `json:"freeBytes"`
	// Pools are the sizes of the images that drivers of ours make, by backend.
	Pools map[string]int64 `json:"pools,omitempty"`
	// Classes are those whose volumes are there.
	Classes []classRoom `json:"classes,omitempty"`
	// Open says what rates without an end add, as a plan's budget does.
	Open     []string `json:"open,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func roomAt(dir string) (*storageRoom, error) {
	at, err := bundle.FilesystemOf(dir)
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
	classes := f.storing(p)
	if len(classes) == 0 {
		return nil, nil
	}
	r, err := roomAt(f.storage)
	if err != nil {
		return nil, err
	}
	r.Classes, r.Open = classes, p.Budget.Open
	for i := range classes {
		c := &classes[i]
		if !csidriver.MakesPool(c.Backend, r.Filesystem) {
			continue
		}
		if r.Pools == nil {
			r.Pools = map[string]int64{}
		}
		if _, known := r.Pools[c.Backend]; !known {
			r.Pools[c.Backend] = csidriver.DefaultPoolSize
		}
		if q, err := resource.ParseQuantity(p.StorageClasses[c.StorageClass].Parameters[poolSize]); err == nil {
			r.Pools[c.Backend] = q.Value()
		}
	}
	for i := range classes {
		classes[i].PoolBytes = r.Pools[classes[i].Backend]
	}
	r.compare()
	return r, nil
}

// poolSize is the parameter of a StorageClass that sets the size of its driver's
// pool.
const poolSize = "driver.cnsbench.dev/pool-size"

// compare warns of volumes that are larger than what holds them: those in a pool
// than the pool, and all together than what is free on the file system beneath.
func (r *storageRoom) compare() {
	var all []string
	var needed int64 // of the file system
	pooled := map[string]int64{}
	for _, c := range r.Classes {
		if c.Bytes > 0 {
			all = append(all, c.StorageClass)
		}
		if c.PoolBytes > 0 {
			pooled[c.Backend] = sum(pooled[c.Backend], c.Bytes)
		} else {
			needed = sum(needed, c.Bytes)
		}
	}
	for _, backend := range slices.Sorted(maps.Keys(pooled)) {
		asked, pool := pooled[backend], r.Pools[backend]
		needed = sum(needed, min(asked, pool)) // the image does not grow beyond its size
		if asked > pool {
			r.warn("the volumes of %s ask for %s, the pool of %s has %s: set %s in the StorageClass",
				r.classesOf(backend), bytes(asked), backend, bytes(pool), poolSize)
		}
	}
	if needed > r.FreeBytes {
		r.warn("the volumes of %s can take %s, %s has %s free: take smaller or fewer volumes, or another --storage-dir",
			strings.Join(all, ", "), bytes(needed), r.Device, bytes(r.FreeBytes))
	}
}

func (r *storageRoom) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// classesOf names the StorageClasses that share the pool of a backend.
func (r *storageRoom) classesOf(backend string) string {
	var names []string
	for _, c := range r.Classes {
		if c.Backend == backend {
			names = append(names, c.StorageClass)
		}
	}
	return strings.Join(names, ", ")
}

// sum stops at the largest number instead of wrapping round.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// print shows the room below the budget of a dry run.
func (r *storageRoom) print(w io.Writer) {
	fmt.Fprintf(w, "storage: %v\n", r)
	for _, c := range r.Classes {
		fmt.Fprintln(w, c)
	}
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
	at := bundle.ExistingParent(dir)
	if unix.Access(at, unix.W_OK) != nil {
		return finding{what, false, true, fmt.Sprintf("%s: %s is not writable; choose another with --storage-dir", dir, at)}
	}
	detail := r.String()
	if at != dir {
		detail += ", made by the first run"
	}
	return finding{what, true, true, detail}
}
