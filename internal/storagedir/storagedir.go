// Package storagedir compares what the volumes of a plan request with the directory in which the built-in drivers
// keep them.
package storagedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// Default is the storage directory without --storage-dir.
func Default() string {
	if os.Geteuid() == 0 {
		return "/var/lib/cnsbench"
	}
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "cnsbench")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return temporary()
	}
	return filepath.Join(home, ".local", "state", "cnsbench")
}

// temporary is the storage directory of a user without a home. Its name is known to all, who may write beside it.
func temporary() string { return filepath.Join(os.TempDir(), fmt.Sprintf("cnsbench-%d", os.Geteuid())) }

// Make creates the default storage directory, if it is missing, and checks it.
func Make() error {
	mode := fs.FileMode(0o755)
	if Default() == temporary() {
		mode = 0o700
	}
	if err := os.MkdirAll(Default(), mode); err != nil {
		return fmt.Errorf("create the storage directory: %w; choose another with --storage-dir", err)
	}
	return Check(Default())
}

// own refuses a directory that another user has made, can write or can read. It follows no link.
func own(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("storage directory: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("storage directory %s: not a directory; choose another with --storage-dir", dir)
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Errorf("storage directory %s belongs to another user: choose another with --storage-dir", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("storage directory %s is open to others (mode %04o): chmod 700 it, or choose another with "+
			"--storage-dir", dir, info.Mode().Perm())
	}
	return nil
}

// Check returns an error unless dir is a directory. Only the default one may be missing: creating a misspelt one
// would measure another disk.
func Check(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && dir == Default():
		return nil
	case dir == temporary():
		return own(dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--storage-dir %s does not exist: create it, or mount the disk to measure there", dir)
	case err != nil:
		return fmt.Errorf("--storage-dir %s: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("--storage-dir %s: not a directory", dir)
	}
	return nil
}

// classes lists the StorageClasses of a plan whose volumes a built-in driver keeps below the storage directory, by
// name.
func classes(p *plan.Plan) (list []Class) {
	for _, name := range slices.Sorted(maps.Keys(p.StorageClasses)) {
		provisioner := p.StorageClasses[name].Provisioner
		backend, builtIn := strings.CutSuffix(provisioner, ".csi.cnsbench.dev")
		if _, external := p.Endpoints[provisioner]; !builtIn || external || backend == "null" {
			continue
		}
		requested := p.Budget.Classes[name]
		list = append(list, Class{StorageClass: name, Backend: backend, Volumes: requested.Volumes,
			Bytes: requested.Bytes, AtLeast: len(p.Budget.Open) > 0})
	}
	return list
}

// HasVolumes says whether volumes of a plan are below the storage directory.
func HasVolumes(p *plan.Plan) bool { return len(classes(p)) > 0 }

// Class is what the volumes of a StorageClass request.
type Class struct {
	StorageClass string `json:"storageClass"`
	Backend      string `json:"backend"`
	Volumes      int64  `json:"volumes"`
	Bytes        int64  `json:"bytes"`
	// PoolBytes is the size of the pool image that has them; 0: none. The classes of a backend share one.
	PoolBytes int64 `json:"poolBytes,omitempty"`
	// AtLeast: a rate without an end creates more.
	AtLeast bool `json:"atLeast,omitempty"`
}

// String describes the request.
func (c Class) String() string {
	atLeast := ""
	if c.AtLeast {
		atLeast = "at least "
	}
	text := fmt.Sprintf("StorageClass %s (%s): %s%s, %s requested", c.StorageClass, c.Backend, atLeast,
		volumes(c.Volumes), bytes(c.Bytes))
	if c.PoolBytes > 0 {
		text += fmt.Sprintf(", from a pool of %s", bytes(c.PoolBytes))
	}
	return text
}

// Room is the space of the storage directory, and what the volumes of a plan request of it.
type Room struct {
	Dir        string `json:"dir"`
	Filesystem string `json:"filesystem"`
	Device     string `json:"device"`
	FreeBytes  int64  `json:"freeBytes"` // -1: the file system does not say
	// Pools are the sizes of the pool images, by backend.
	Pools map[string]int64 `json:"pools,omitempty"`
	// Classes are those whose volumes are in the directory.
	Classes []Class `json:"classes,omitempty"`
	// Open describes what rates without an end add, as in a plan's budget.
	Open     []string `json:"open,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// At describes a directory without a plan.
func At(dir string) (*Room, error) {
	at, err := bundle.FilesystemOf(dir)
	if err != nil {
		return nil, err
	}
	return &Room{Dir: dir, Filesystem: at.Type, Device: at.Source, FreeBytes: at.Free}, nil
}

// String names the directory, its device and its free space.
func (r *Room) String() string {
	free := "free space unknown"
	if r.FreeBytes >= 0 {
		free = fmt.Sprintf("%.1f GiB free", float64(r.FreeBytes)/(1<<30))
	}
	return fmt.Sprintf("%s (%s on %s, %s)", r.Dir, r.Filesystem, r.Device, free)
}

// Of describes a directory and what the volumes of a plan request of it; nil if they are not below it.
func Of(p *plan.Plan, dir string) (*Room, error) {
	list := classes(p)
	if len(list) == 0 {
		return nil, nil
	}
	r, err := At(dir)
	if err != nil {
		return nil, err
	}
	r.Classes, r.Open = list, p.Budget.Open
	for i := range list {
		c := &list[i]
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
	for i := range list {
		list[i].PoolBytes = r.Pools[list[i].Backend]
	}
	r.compare()
	return r, nil
}

// poolSize is the parameter of a StorageClass with the size of its driver's pool.
const poolSize = "driver.cnsbench.dev/pool-size"

// compare warns of volumes that exceed their pool, or together the free space of the file system.
func (r *Room) compare() {
	var all []string
	var needed int64 // on the file system
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
	if r.FreeBytes >= 0 && needed > r.FreeBytes {
		r.warn("the volumes of %s can take %s, %s has %s free: take smaller or fewer volumes, or another --storage-dir",
			strings.Join(all, ", "), bytes(needed), r.Device, bytes(r.FreeBytes&^(1<<20-1)))
	}
}

func (r *Room) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// classesOf names the StorageClasses that share the pool of a backend.
func (r *Room) classesOf(backend string) string {
	var names []string
	for _, c := range r.Classes {
		if c.Backend == backend {
			names = append(names, c.StorageClass)
		}
	}
	return strings.Join(names, ", ")
}

// sum saturates instead of overflowing.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Print writes the room below the budget of a dry run.
func (r *Room) Print(w io.Writer) {
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

func volumes(n int64) string {
	if n == 1 {
		return "1 volume"
	}
	return fmt.Sprintf("%d volumes", n)
}

func bytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
