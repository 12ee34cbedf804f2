package catalog

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Cache has the entries of bundles that are closed, which change no more. The zero value is empty. It is safe for
// concurrent use.
type Cache struct {
	mu      sync.Mutex
	entries map[string]cached
}

// cached is the entry of a bundle as of a version of its directory and of run.json.
type cached struct {
	version
	Entry
}

type version struct{ dir, run time.Time }

// bundle returns the entry of the bundle at a path.
func (c *Cache) bundle(path string) Entry {
	v, known := versionOf(path)
	c.mu.Lock()
	old, found := c.entries[path]
	c.mu.Unlock()
	if known && found && old.version == v {
		return old.Entry
	}
	e := bundleAt(path)
	if known && e.Kind == KindBundle && e.State != string(bundle.Running) && e.State != stateIncomplete {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries == nil {
			c.entries = map[string]cached{}
		}
		c.entries[path] = cached{v, e}
	}
	return e
}

// versionOf returns when the directory of a bundle and its run.json were changed; false if one is missing.
func versionOf(path string) (version, bool) {
	dir, err := os.Stat(path)
	if err != nil {
		return version{}, false
	}
	run, err := os.Stat(filepath.Join(path, runFile))
	if err != nil {
		return version{}, false
	}
	return version{dir.ModTime(), run.ModTime()}, true
}

// describe adds what the run was of. Fields that cannot be read are left out: a run of an older version has others.
func (e *Entry) describe(r *bundle.Run) {
	var facts struct {
		StorageClasses map[string]string `json:"storageClasses"`
	}
	if json.Unmarshal(r.Plan, &facts) == nil {
		e.Drivers = slices.Compact(slices.Sorted(maps.Values(facts.StorageClasses)))
	}
	var spec struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if json.Unmarshal(r.Spec, &spec) == nil {
		e.Labels = spec.Metadata.Labels
	}
	for _, w := range r.Source.Workloads {
		if !slices.Contains(e.Workloads, w.Name) {
			e.Workloads = append(e.Workloads, w.Name)
		}
	}
}
