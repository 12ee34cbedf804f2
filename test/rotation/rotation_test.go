package rotation

import (
	"fmt"
	"slices"
	"testing"
)

// TestEachHasItsTurn checks that each application is selected equally often over many commits, and none twice by one.
func TestEachHasItsTurn(t *testing.T) {
	n := map[string]int{}
	for i := range len(Applications) * 10 {
		selected, err := of(fmt.Sprintf("%08xcc4a27405b06633eebf6eb6093076963", i), perCommit, Applications)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(selected)
		if len(slices.Compact(selected)) != perCommit {
			t.Errorf("commit %d selects %v", i, selected)
		}
		for _, name := range selected {
			n[name]++
		}
	}
	for _, name := range Applications {
		if n[name] != 10*perCommit {
			t.Errorf("%s is selected %d times, want %d", name, n[name], 10*perCommit)
		}
	}
	if _, err := of("not a hash", 1, Applications); err == nil {
		t.Error("a commit that is no hash has no error")
	}
}
