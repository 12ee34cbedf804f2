package study

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

func TestFailure(t *testing.T) {
	d := &Dir{Path: t.TempDir()}
	trial := Trial{Name: "trial-1"}
	if got := d.Failure(trial); got != "" {
		t.Errorf("before: %q", got)
	}
	if err := d.recordFailure(trial, 2, errors.New("no such StorageClass "+strings.Repeat("x", 2*maxReason))); err != nil {
		t.Fatal(err)
	}
	if got := d.Failure(trial); !strings.HasPrefix(got, "no such StorageClass x") || len(got) != maxReason {
		t.Errorf("%d bytes: %.40q", len(got), got)
	}
}

// TestNotesOfBadCells: the notes of a table say which cell has failed and invalid trials, and why.
func TestNotesOfBadCells(t *testing.T) {
	level := func(v string) []Level { return []Level{{Factor: "class", Value: v}} }
	table := &Table{Rows: []Row{{Levels: level("good"), Done: 2, Of: 2}, {Levels: level("bad"), Done: 1, Of: 2,
		Failed: "no such StorageClass"}}}
	for i := range table.Rows {
		table.Rows[i].count(&bundle.Run{})
	}
	table.Rows[1].count(&bundle.Run{Validity: []bundle.Flag{
		{Name: "failedOps", Severity: validity.Invalid, Evidence: "snap: of 11 ops 10 failed"}}})
	want := []string{"1 of 2 trials of class=bad have no result; the first that failed: no such StorageClass",
		"trials of class=bad: 1 done, 1 of them invalid: failedOps in 1 (the first: snap: of 11 ops 10 failed)"}
	if got := table.Notes(); !slices.Equal(got, want) {
		t.Errorf("notes %q\nwant %q", got, want)
	}
}
