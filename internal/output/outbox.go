package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// outbox is the file beside a bundle that says which documents were delivered.
// It is missing when all were.
type outbox struct {
	RunID     string          `json:"runID"`
	Delivered map[string]keys `json:"delivered"` // by output

	path string
	last []byte // what was saved
}

// OutboxOf is where the outbox of the bundle in dir lies.
func OutboxOf(dir string) string { return filepath.Clean(dir) + ".outbox" }

// HasOutbox says that documents of the bundle in dir may wait to be sent.
func HasOutbox(dir string) bool {
	file := OutboxOf(dir)
	return beside(file).Has(filepath.Base(file))
}

// beside is the directory of a file.
func beside(file string) bounded.Dir { return bounded.Dir(filepath.Dir(file)) }

// maxOutbox is the most that is read of an outbox: it has a range of numbers, or a
// number, of each output.
const maxOutbox = 64 << 20

// openOutbox reads the outbox of a bundle; one of another run counts as none.
func openOutbox(dir, runID string) (*outbox, error) {
	o := &outbox{path: OutboxOf(dir)}
	b, err := beside(o.path).ReadFile(filepath.Base(o.path), maxOutbox)
	if err == nil {
		err = json.Unmarshal(b, o)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("output: %s: %w (remove it to send everything again)", o.path, err)
	}
	if o.RunID != runID || o.Delivered == nil {
		o.RunID, o.Delivered = runID, map[string]keys{}
	}
	return o, nil
}

// save replaces the file if what it says has changed.
func (o *outbox) save(delivered map[string]json.RawMessage) error {
	b, err := json.Marshal(map[string]any{"runID": o.RunID, "delivered": delivered})
	if err != nil || bytes.Equal(b, o.last) {
		return err
	}
	if err := beside(o.path).WriteFile(filepath.Base(o.path), b); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	o.last = b
	return nil
}

func (o *outbox) remove() error {
	if err := os.Remove(o.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}
