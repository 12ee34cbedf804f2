package trace

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// LeastKey is how many bytes a key must have: names are short and could be
// guessed one after another, so that only the key protects them.
const LeastKey = 16

// Anonymize replaces the names of objects, classes and nodes by keyed hashes
// (HMAC-SHA-256, 64 bits of it): the same name becomes the same hash under one
// key, so that who acts on what is kept, as are times, sizes and outcomes.
// Records are changed in place.
func Anonymize(records []Record, key []byte) error {
	if len(key) < LeastKey {
		return errors.New("the key is too short: 16 bytes at least, such as from: head -c 32 /dev/urandom")
	}
	known := map[string]string{}
	hide := func(what, name string) string {
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
			sources = append(sources, hide(string(of), name))
		}
		r.Source = strings.Join(sources, " ")
		r.Object = hide(string(r.Kind), r.Object)
		r.Class, r.Node = hide("class", r.Class), hide("node", r.Node)
	}
	return nil
}
