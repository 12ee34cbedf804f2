package quota_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/quota"
)

func TestTake(t *testing.T) {
	type take struct {
		file string
		n    int
	}
	for _, tt := range []struct {
		name  string
		limit int64
		takes []take
		want  []int
	}{
		{"no bound", 0, []take{{quota.Stdout, 1 << 30}, {"a", 1 << 30}}, []int{1 << 30, 1 << 30}},
		{"a file", 100, []take{{"a", 60}, {"b", 60}, {"a", 1}, {"c", 1}}, []int{60, 40, 0, 0}},
		{"stdout leaves three quarters", 100, []take{{quota.Stdout, 60}, {quota.Stdout, 1}, {"a", 80}},
			[]int{25, 0, 75}},
		{"stdout leaves stderr its own", 100, []take{{quota.Stdout, 60}, {quota.Stderr, 60}, {"a", 60}},
			[]int{25, 25, 50}},
		{"files come first", 100, []take{{"a", 90}, {quota.Stdout, 20}}, []int{90, 10}},
		{"nothing asked", 100, []take{{"a", 100}, {"a", 0}}, []int{100, 0}},
		{"exactly", 100, []take{{"a", 100}, {"b", 1}}, []int{100, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := quota.New(tt.limit)
			var got []int
			for _, x := range tt.takes {
				got = append(got, q.Take(x.file, x.n))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTakeNeverAgain: what was refused once has no room later, so that a file has
// no hole.
func TestTakeNeverAgain(t *testing.T) {
	q := quota.New(1000)
	refused := map[string]bool{}
	for i := range 500 {
		file := []string{quota.Stdout, quota.Stderr, "a", "b"}[i*7%4]
		got := q.Take(file, 1+i%11)
		if refused[file] && got > 0 {
			t.Fatalf("%s had %d bytes after it was refused some", file, got)
		}
		refused[file] = refused[file] || got < 1+i%11
	}
	if len(refused) != 4 {
		t.Error("not every file was asked for")
	}
}

func TestLines(t *testing.T) {
	l := quota.NewLines(1000)
	kept, lasts := 0, 0
	for range 100 {
		ok, last := l.Take(strings.Repeat("x", 36))
		if ok {
			kept++
		}
		if last {
			lasts++
		}
	}
	if kept != 10 || lasts != 1 || !l.Full() {
		t.Errorf("%d lines were kept and %d were the last, full: %v; want 10, 1, true", kept, lasts, l.Full())
	}
}
