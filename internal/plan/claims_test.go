package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// TestSizeInThousandths checks that a size of a part of a byte is refused, and not one with a fraction of a unit.
func TestSizeInThousandths(t *testing.T) {
	for text, want := range map[string]string{"64m": "a size of 64m is not a whole number of bytes", "1500m": "1500m is not",
		"0.1Gi": "", "64Mi": ""} {
		q := resource.MustParse(text)
		r := &parse.Report{Document: &parse.Document{}}
		bytesOf(r, "", &q)
		got := ""
		for _, p := range r.Problems {
			got += p.String()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
