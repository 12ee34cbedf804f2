package model

import "testing"

// TestHashedNames checks that names spread evenly over the first digit, and are the same each time.
func TestHashedNames(t *testing.T) {
	n := Name{Hash: 4}
	first, all := map[byte]int{}, map[string]bool{}
	for i := range int64(16000) {
		b := n.AppendHash(nil, i)
		if len(b) != 5 || b[4] != '-' || string(b) != string(n.AppendHash(nil, i)) {
			t.Fatalf("%q", b)
		}
		first[b[0]]++
		all[string(b)] = true
	}
	for c, k := range first {
		if k < 850 || k > 1150 {
			t.Errorf("%d of 16000 names begin with %c", k, c)
		}
	}
	if len(first) != 16 || len(all) < 13000 {
		t.Errorf("%d first digits, %d prefixes", len(first), len(all))
	}
}
