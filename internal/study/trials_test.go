package study

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/plan"
)

// executor notes which trials it is asked to run.
type executor struct {
	codes []int // by call
	err   error // of the last call
	ran   []string
	stop  bool
}

func (x *executor) Load(context.Context, Job, bool) (*plan.Plan, error) { return nil, nil }
func (x *executor) Open(string) (io.ReadCloser, error)                  { return nil, os.ErrNotExist }
func (x *executor) CleanUp(context.Context, string) error               { return nil }
func (x *executor) Interrupted() bool                                   { return x.stop }

func (x *executor) Run(_ context.Context, dir string, j Job) (int, error) {
	x.ran = append(x.ran, filepath.Base(dir)+" "+strings.Join(j.Set, " "))
	n := len(x.ran)
	if n == len(x.codes) {
		return x.codes[n-1], x.err
	}
	return x.codes[n-1], nil
}

// A study runs its trials in order with the values of all trials first; a failed trial does not end it, and an
// interrupt does.
func TestRun(t *testing.T) {
	design := &Design{Base: []string{"all=1"}, Cells: []Cell{{}, {}, {}}, Trials: []Trial{
		{Name: "a", Occasion: 1, Set: []string{"x=1"}}, {Name: "b", Occasion: 1, Cell: 1}, {Name: "c", Occasion: 1, Cell: 2}}}
	for _, tt := range []struct {
		name string
		x    executor
		want []int
		ran  int
		err  error
	}{
		{"all", executor{codes: []int{0, 2, 3}, err: errors.New("failed")}, []int{0, 2, 3}, 3, nil},
		{"interrupted trial", executor{codes: []int{0, 130}, err: ErrInterrupted}, []int{0}, 2, ErrInterrupted},
		{"interrupted between trials", executor{codes: []int{0, 0, 0}, stop: true}, nil, 1, ErrInterrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log strings.Builder
			codes, err := (&Dir{Path: t.TempDir(), Design: design}).Run(t.Context(), &tt.x, 1, &log)
			if diff := cmp.Diff(tt.want, codes); diff != "" || len(tt.x.ran) != tt.ran || !errors.Is(err, tt.err) {
				t.Errorf("codes %v, ran %q, error %v", codes, tt.x.ran, err)
			}
			if tt.x.ran[0] != "a all=1 x=1" || !strings.Contains(log.String(), "trial 1 of 3: all, repetition 0") {
				t.Errorf("ran %q, log\n%s", tt.x.ran, &log)
			}
		})
	}
}
