package op

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParts(t *testing.T) {
	t.Parallel()
	want := []Part{{PartMkfs, 20, 80}, {PartFreeze, 80, 80}}
	text := FormatParts(100, want)
	total, got, ok := ParseParts(text)
	if diff := cmp.Diff(want, got); !ok || total != 100 || diff != "" {
		t.Errorf("%s: total %d, %t, %s", text, total, ok, diff)
	}
	if total, got, ok := ParseParts("7;later=1-2"); !ok || total != 7 || len(got) != 0 {
		t.Errorf("a part of a later version: %d, %v, %t", total, got, ok)
	}
	for _, bad := range []string{"", "x", "-1", "100;mkfs", "100;mkfs=5", "100;mkfs=9-5", "100;mkfs=90-101",
		"100;mkfs=-5-7", "100;mkfs=1-2;", "100" + strings.Repeat(";mkfs=1-2", 17)} {
		if _, _, ok := ParseParts(bad); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzParseParts(f *testing.F) {
	f.Add("100;mkfs=20-80;freeze=1-2")
	f.Fuzz(func(t *testing.T, text string) {
		total, parts, _ := ParseParts(text)
		for _, p := range parts {
			if p.Start < 0 || p.End < p.Start || p.End > total {
				t.Errorf("%q: %+v of %d", text, p, total)
			}
		}
	})
}
