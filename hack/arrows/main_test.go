package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCount checks that circles between files are counted with the fewest arrows back.
func TestCount(t *testing.T) {
	arrows := func(pairs ...string) map[arrow]string {
		all := map[arrow]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[arrow{pairs[i], pairs[i+1]}] = "x"
		}
		return all
	}
	tests := []struct {
		name   string
		arrows map[arrow]string
		want   []string
	}{
		{"downwards", arrows("c", "b", "b", "a", "c", "a"), nil},
		{"a circle of two", arrows("a", "b", "b", "a"), []string{"b -> a: x"}},
		{"a hub", arrows("a", "h", "b", "h", "c", "h", "h", "a"), []string{"h -> a: x"}},
		{"a circle of three", arrows("a", "b", "b", "c", "c", "a"), []string{"c -> a: x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := count("p", tt.arrows)
			if diff := cmp.Diff(tt.want, r.back); diff != "" {
				t.Error(diff)
			}
			if r.all != len(tt.arrows) {
				t.Errorf("%d arrows", r.all)
			}
		})
	}
}
