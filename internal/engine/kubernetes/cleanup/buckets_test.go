package cleanup

import (
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestAccessesFirst checks that BucketAccesses come before all else, in their order, and that the ledger's own list
// stays as it is.
func TestAccessesFirst(t *testing.T) {
	entry := func(name, kind string) op.LedgerEntry {
		return op.LedgerEntry{Name: name, Data: map[string]string{"group": engine.BucketGroup, "kind": kind}}
	}
	given := []op.LedgerEntry{entry("c0", "BucketClaim"), entry("a0", "BucketAccess"), {Name: "pod"},
		entry("a1", "BucketAccess")}
	names := func(list []op.LedgerEntry) (all []string) {
		for _, e := range list {
			all = append(all, e.Name)
		}
		return all
	}
	if got, want := names(accessesFirst(given)), []string{"a0", "a1", "c0", "pod"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := names(given), []string{"c0", "a0", "pod", "a1"}; !slices.Equal(got, want) {
		t.Errorf("the given list became %v", got)
	}
}
