package model

import (
	"slices"
	"strings"
	"testing"
)

// TestNameOps checks the names of unnamed operations.
func TestNameOps(t *testing.T) {
	ops := []Op{{Type: Read}, {Type: Read, Name: "large"}, {Type: Write}, {Type: Read}, {Type: Read}}
	NameOps(ops)
	var names, given []string
	for i := range ops {
		names = append(names, ops[i].Name)
		given = append(given, ops[i].GivenName())
	}
	if want := []string{"read", "large", "write", "read-2", "read-3"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if want := []string{"", "large", "", "", ""}; !slices.Equal(given, want) {
		t.Errorf("given %q", given)
	}
}

// TestCheckOpName checks valid and invalid names of operations.
func TestCheckOpName(t *testing.T) {
	for _, good := range []string{"small", "read-small", "readers", "r2", strings.Repeat("x", 63)} {
		if err := CheckOpName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "a b", "a.b", "2nd", "a-", "service", "firstByte", "read", "write-2",
		strings.Repeat("x", 64)} {
		if CheckOpName(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}
