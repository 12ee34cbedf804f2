package dataset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestBusy compares the times of ops with those of all windows that Owns selects.
func TestBusy(t *testing.T) {
	d := &Data{Canaries: []Canary{{Instance: "db-1", Volume: "db-1-data"}, {Instance: "db-1", Volume: "shared"},
		{Instance: "db-12", Volume: "db-12-data"}, {Instance: "db-12", Volume: "shared"}},
		Series: []bundle.Series{{Labels: bundle.Labels{Instance: "web-0"}}, {Labels: bundle.Labels{Instance: "web"}}}}
	targets := []string{"db-1", "db-1-data", "db-12-data", "db-1/pod-0", "web-0-0", "web", "web-10-data", "shared",
		"other", "", "db-1-data,db-12-data", "web-0,shared", "-", "/"}
	random := rand.New(rand.NewPCG(1, 2))
	var ws []Window
	for i := range 500 {
		from := op.Time(random.IntN(5000))
		ws = append(ws, Window{Op: int64(i), Action: fmt.Sprintf("a%d", i%3), Target: targets[random.IntN(len(targets))],
			From: from, To: from + op.Time(random.IntN(60))})
	}
	b := d.NewBusy()
	for i := range ws {
		b.Add(&ws[i])
	}
	b.Done()
	SortWindows(ws)
	if diff := cmp.Diff([]string{"a0", "a1", "a2"}, b.Actions()); diff != "" {
		t.Error(diff)
	}
	for _, action := range b.Actions() {
		all := slices.DeleteFunc(slices.Clone(ws), func(w Window) bool { return w.Action != action })
		if diff := cmp.Diff(UnionOf(all), b.All(action)); diff != "" {
			t.Errorf("%s: %s", action, diff)
		}
		for _, of := range [][2]string{{"db-1", "db-1-data"}, {"db-1", "shared"}, {"db-12", "db-12-data"}, {"db-1", ""},
			{"db-12", ""}, {"web-0", ""}, {"web", ""}, {"absent", ""}} {
			own := slices.DeleteFunc(slices.Clone(all), func(w Window) bool { return !d.Owns(of[0], of[1], w.Target) })
			if diff := cmp.Diff(UnionOf(own), b.Own(action, of[0], of[1]), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s of %q: %s", action, of, diff)
			}
		}
	}
}

// TestCursor: a cursor answers as its set does.
func TestCursor(t *testing.T) {
	u := Union{{0, 3}, {10, 10}, {20, 25}}
	c := Cursor{Of: u}
	for from := op.Time(-2); from < 30; from++ {
		for _, length := range []op.Time{0, 1, 7, 40} {
			if got, want := c.Overlaps(from, from+length), u.Overlaps(from, from+length); got != want {
				t.Errorf("[%d, %d]: %v, want %v", from, from+length, got, want)
			}
		}
	}
}
