package trace

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// MinKey is the minimum length of a key in bytes. Names are short and can be guessed, so only the key
// protects them.
const MinKey = 16

// Anonymize replaces the names of objects, classes and nodes with keyed hashes (64 bits of HMAC-SHA-256). Equal names
// have equal hashes under one key; times, sizes and outcomes are kept. It changes the records in place.
func Anonymize(records []Record, key []byte) error {
	if len(key) < MinKey {
		return errors.New("the key is too short: want at least 16 bytes, such as from: head -c 32 /dev/urandom")
	}
	known := map[string]string{}
	hash := func(what, name string) string {
		if name == "" {
			return ""
		}
		id := what + "\x00" + name
		if known[id] == "" {
			h := hmac.New(sha256.New, key)
			h.Write([]byte(id))
			known[id] = what[:1] + hex.EncodeToString(h.Sum(nil)[:8])
		}
		return known[id]
	}
	for i := range records {
		r := &records[i]
		of := Volume
		if r.Op == Restore {
			of = Snapshots
		}
		var sources []string
		for name := range strings.FieldsSeq(r.Source) {
			sources = append(sources, hash(string(of), name))
		}
		r.Source = strings.Join(sources, " ")
		r.Object = hash(string(r.Kind), r.Object)
		r.Class, r.Node = hash("class", r.Class), hash("node", r.Node)
	}
	return nil
}
