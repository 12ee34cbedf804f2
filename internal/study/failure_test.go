package study

import (
	"errors"
	"strings"
	"testing"
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
