package loadgen

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// A work ends five intervals after its store has become steady; one whose store never does ends by its runtime, and
// says so.
func TestUntilSteady(t *testing.T) {
	type takes = func(*client.Request, op.Time) (time.Duration, func(*client.Result))
	slower := func(until, every time.Duration) takes { // each time half as fast
		return func(_ *client.Request, at op.Time) (time.Duration, func(*client.Result)) {
			n := min(time.Duration(at), until) / every
			return 10*time.Millisecond + 5*time.Millisecond*(n%4), nil
		}
	}
	for _, tt := range []struct {
		name  string
		takes takes
		want  time.Duration
		found bool
	}{
		{"at once", always(10 * time.Millisecond), 25 * time.Second, false},
		{"after 20 s", slower(20*time.Second, 5*time.Second), 45 * time.Second, false},
		{"never", slower(time.Hour, 5*time.Second), 2 * time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := run(t.Context(), &fake{takes: tt.takes},
				stageOf(model.Work{Name: "w", Workers: 4, Runtime: 2 * time.Minute, UntilSteady: true,
					Ops: []model.Op{reads(100)}}))
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			w := &r.Stages[0].Works[0]
			if d := time.Duration(w.To-w.From) - tt.want; d < -time.Second || d > time.Second {
				t.Errorf("%s: it ended after %v, want %v; %+v", tt.name, time.Duration(w.To-w.From), tt.want, w.Steady)
			}
			found := false
			for _, f := range w.Findings() {
				found = found || f.Code == "not-steady" && strings.Contains(f.Text, "a range of")
			}
			if found != tt.found || w.Steady == nil || w.Steady.Steady == tt.found {
				t.Errorf("%s: %+v, %v", tt.name, w.Findings(), w.Steady)
			}
		})
	}
}

// After a 503 or a 401 a worker of a closed loop waits, as after a request without a response.
func TestRestAfterRefusal(t *testing.T) {
	for status, want := range map[int]int64{503: 10, 401: 10, 404: 1000} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := run(t.Context(), &fake{takes: func(*client.Request, op.Time) (time.Duration, func(*client.Result)) {
				return time.Millisecond, func(r *client.Result) { r.Status = status }
			}}, stageOf(model.Work{Name: "w", Workers: 1, Runtime: time.Second, MaxFailures: 1_000_000,
				Ops: []model.Op{reads(100)}}))
			if f := only(t, r.Stages[0]); f.Failed < want*9/10 || f.Failed > want*11/10 {
				t.Errorf("%d: %d operations in a second, want %d", status, f.Failed, want)
			}
		})
	}
}
