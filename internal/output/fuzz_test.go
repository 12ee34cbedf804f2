package output

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOutbox reads what a run says of delivered documents. What was read and saved again is the same.
func FuzzOutbox(f *testing.F) {
	for _, text := range []string{`{"runID":"r","delivered":{"o":{"ops":"1-40,42","others":["run/start"]}}}`, "{}", "null",
		`{"runID":"r","delivered":{"o":{"ops":"9223372036854775807"}}}`, `{"runID":"r","delivered":{"o":{"ops":"3-1"}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := filepath.Join(t.TempDir(), "bundle")
		if err := os.WriteFile(OutboxOf(dir), text, 0o644); err != nil {
			t.Fatal(err)
		}
		o, err := openOutbox(dir, "r")
		if err != nil {
			return
		}
		delivered := map[string]json.RawMessage{}
		for name, k := range o.Delivered {
			if delivered[name], err = json.Marshal(&k); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.save(delivered); err != nil {
			t.Fatal(err)
		}
		again, err := openOutbox(dir, "r")
		if err != nil {
			t.Fatalf("%s\nread, and saved, and not read again: %v", text, err)
		}
		for name, k := range again.Delivered {
			if b, err := json.Marshal(&k); err != nil || string(b) != string(delivered[name]) {
				t.Errorf("%s: %s, %v; before: %s", name, b, err, delivered[name])
			}
		}
	})
}
