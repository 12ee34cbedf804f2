package csidriver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// phase says whether an object is whole. It is written before the physical work begins, so that a driver that was
// killed in between knows what to undo.
type phase string

const (
	ready    phase = ""
	creating phase = "creating"
	deleting phase = "deleting"
)

// volume is the record of one volume. Records are values: whoever changes one changes a clone and puts it.
type volume struct {
	ID, Name string
	Phase    phase             `json:",omitempty"`
	Size     int64             // bytes
	Block    bool              `json:",omitempty"` // raw block volume
	FSType   string            `json:",omitempty"` // loopfile only
	Params   map[string]string `json:",omitempty"`
	Mutable  map[string]string `json:",omitempty"`
	Source   *source           `json:",omitempty"`
	// Formatted: the image carries a file system. NeedsGrow: it is smaller than the image.
	Formatted, NeedsGrow bool                   `json:",omitempty"`
	Attached             *attachment            `json:",omitempty"`
	Staged               map[string]bool        `json:",omitempty"` // staging path → true
	Published            map[string]publication `json:",omitempty"` // target path → how
}

// source is what a volume was made from; one field is set.
type source struct{ Snapshot, Volume string }

type attachment struct {
	ReadOnly bool
	Mode     string // access mode
	Device   string `json:",omitempty"`
}

type publication struct {
	ReadOnly bool
	Mode     string
}

func (v volume) clone() volume {
	v.Mutable, v.Staged, v.Published = maps.Clone(v.Mutable), maps.Clone(v.Staged), maps.Clone(v.Published)
	if v.Staged == nil {
		v.Staged = map[string]bool{}
	}
	if v.Published == nil {
		v.Published = map[string]publication{}
	}
	return v
}

// snapshot is the record of one snapshot.
type snapshot struct {
	ID, Name string
	Phase    phase `json:",omitempty"`
	Volume   string
	Size     int64 // bytes
	Created  int64 // wall clock, ns
	Group    string
	// What the volume was, for the volumes made from it.
	Block     bool   `json:",omitempty"`
	FSType    string `json:",omitempty"`
	Formatted bool   `json:",omitempty"`
}

// group is the record of one group snapshot.
type group struct {
	ID, Name  string
	Phase     phase `json:",omitempty"`
	Volumes   []string
	Snapshots []string
	Created   int64
}

// table keeps the records of one kind, in memory and in one file each. It is safe for concurrent use; two writers of one
// record exclude each other by the driver's locks.
type table[T any] struct {
	dir  string // empty: memory only
	sync bool   // survive power loss, not only the death of the process

	mu   sync.RWMutex
	rows map[string]T
}

// openTable reads the records below dir; what a killed writer left unfinished there is removed. With an error it returns
// the records that could be read.
func openTable[T any](dir string, durable bool) (*table[T], error) {
	t := &table[T]{dir: dir, sync: durable, rows: map[string]T{}}
	if dir == "" {
		return t, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return t, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return t, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			_ = os.Remove(path)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return t, err
		}
		var row T
		if err := json.Unmarshal(text, &row); err != nil {
			return t, fmt.Errorf("state file %s is damaged: %w; remove the base directory to begin anew", path, err)
		}
		t.rows[id] = row
	}
	return t, nil
}

func (t *table[T]) get(id string) (T, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	row, ok := t.rows[id]
	return row, ok
}

// all returns the records ordered by id.
func (t *table[T]) all() []T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rows := make([]T, 0, len(t.rows))
	for _, id := range slices.Sorted(maps.Keys(t.rows)) {
		rows = append(rows, t.rows[id])
	}
	return rows
}

// put writes the record, replacing the file atomically.
func (t *table[T]) put(id string, row T) error {
	if t.dir != "" {
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(t.dir, id+".json"), text, t.sync); err != nil {
			return fmt.Errorf("writing the state of %s: %w", id, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[id] = row
	return nil
}

func (t *table[T]) delete(id string) error {
	if t.dir != "" {
		if err := os.Remove(filepath.Join(t.dir, id+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the state of %s: %w", id, err)
		}
		if t.sync {
			if err := syncDir(t.dir); err != nil {
				return err
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, id)
	return nil
}

func replaceFile(path string, text []byte, durable bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone when all went well
	if _, err = f.Write(text); err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil || !durable {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
