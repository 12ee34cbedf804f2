package cli

import (
	"strings"
	"testing"
)

// TestBestFirst: an order of levels says which end is the best.
func TestBestFirst(t *testing.T) {
	t.Parallel()
	_, out, errs := cnsbench(t, "", "compare", importAzure(t), "--factor", "provider")
	if !strings.Contains(out, "best first, by median for these 4 occasions: ") {
		t.Errorf("%s%s", out, errs)
	}
}
