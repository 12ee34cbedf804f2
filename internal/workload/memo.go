package workload

import "sync"

// What a memo keeps: so many manifests, each of at most so many bytes.
const (
	maxKept     = 64
	maxKeptText = 16 << 10
)

// memo keeps what was decoded of the latest manifests, by type and text: most instances of an entry have the same
// manifests, and decoding takes most of the time of Render. It is safe for concurrent use.
type memo struct {
	mu   sync.Mutex
	kept map[string]any
}

var decodedManifests memo

// decodedOnce returns what decode makes of a text. Callers must not change it.
func decodedOnce[T any](m *memo, kind string, text []byte, decode func(*T) error) (*T, error) {
	key := kind + " " + string(text)
	m.mu.Lock()
	known, ok := m.kept[key].(*T)
	m.mu.Unlock()
	if ok {
		return known, nil
	}
	v := new(T)
	if err := decode(v); err != nil || len(text) > maxKeptText {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil || len(m.kept) >= maxKept {
		m.kept = map[string]any{}
	}
	m.kept[key] = v
	return v, nil
}
