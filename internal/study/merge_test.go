package study

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// clusters runs two equal studies and another one, of known values, and returns the directory that has them.
func clusters(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	other := strings.Replace(occasions, "slow, fast", "slow, faster, fast", 1)
	for name, of := range map[string]struct {
		text string
		iops float64
	}{"east": {occasions, 100}, "west": {occasions, 200}, "other": {other, 1}} {
		x := &platform{t: t, left: -1, value: func(Job) (float64, time.Duration) { return of.iops, time.Minute }}
		dir, err := Begin(filepath.Join(root, name), designOf(t, of.text),
			Occasion{Begun: time.Unix(0, 0).UTC(), Zone: "UTC"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dir.Run(t.Context(), x, 1, io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestMerge: one study of two, with the cluster as a factor and occasions of their own.
func TestMerge(t *testing.T) {
	root := clusters(t)
	both := filepath.Join(root, "both")
	east, west := filepath.Join(root, "east"), filepath.Join(root, "west")
	if _, err := Merge(both, []string{east, west}, []string{"east", "west"}); err != nil {
		t.Fatal(err)
	}
	dir, err := Open(both)
	if err != nil {
		t.Fatal(err)
	}
	table, err := dir.Table()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range table.Rows {
		got = append(got, nameOf(r.Levels)+" "+r.Values[0].String())
	}
	want := []string{
		"cluster=east storageClass=slow 100/s (100/s … 100/s)", "cluster=east storageClass=fast 100/s (100/s … 100/s)",
		"cluster=east storageClass=fast (A/A) 100/s (100/s … 100/s)",
		"cluster=west storageClass=slow 200/s (200/s … 200/s)", "cluster=west storageClass=fast 200/s (200/s … 200/s)",
		"cluster=west storageClass=fast (A/A) 200/s (200/s … 200/s)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(dir.Occasions) != 2 || dir.Occasions[1].Cluster != "west" || *dir.Cells[5].AAOf != 4 {
		t.Errorf("%+v, %+v", dir.Occasions, dir.Cells)
	}
	occasionsOf := map[int]bool{}
	for _, v := range slices.Concat(table.Rows[0].Values[0].Trials, table.Rows[3].Values[0].Trials) {
		occasionsOf[v.Occasion] = true
	}
	if len(occasionsOf) != 2 {
		t.Errorf("the clusters share an occasion: %v", occasionsOf)
	}
	if left, err := filepath.Glob(filepath.Join(root, ".*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	mergeRefuses(t, root)
}

// mergeRefuses checks that other designs, names that clash, and merged studies are refused.
func mergeRefuses(t *testing.T, root string) {
	t.Helper()
	for _, tt := range []struct {
		out          string
		paths, names []string
		want         string
	}{
		{"x", []string{"east", "other"}, []string{"a", "b"}, "different designs"},
		{"x", []string{"east", "west"}, []string{"a", "a"}, "--names"},
		{"x", []string{"east", "west"}, []string{"a", "../b"}, "invalid name"},
		{"both", []string{"east", "west"}, []string{"a", "b"}, "not empty"},
		{"x", []string{"east", "east"}, []string{"a", "b"}, "given twice"},
		{"x", []string{"both", "west"}, []string{"a", "b"}, "was merged"},
	} {
		paths := []string{filepath.Join(root, tt.paths[0]), filepath.Join(root, tt.paths[1])}
		_, err := Merge(filepath.Join(root, tt.out), paths, tt.names)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.paths, err, tt.want)
		}
	}
	_, err := Begin(filepath.Join(root, "both"), designOf(t, occasions), Occasion{})
	if err == nil || !strings.Contains(err.Error(), "was merged") {
		t.Errorf("a merged study goes on: %v", err)
	}
}
