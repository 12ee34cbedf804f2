package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// at is an instant of the tests.
func at(s int) time.Time { return time.Date(2026, 11, 26, 12, 0, s, 0, time.UTC) }

// show writes a list as "ID:STATE ID:STATE".
func show(l *list) string {
	var words []string
	for _, s := range l.Submissions {
		words = append(words, s.ID+":"+string(s.State))
	}
	return strings.Join(words, " ")
}

// filled returns a list with submissions 1 to n, of which the first runs.
func filled(t *testing.T, n int) *list {
	t.Helper()
	l := &list{}
	for i := range n {
		if _, err := l.add(Submission{Name: "a", Text: "x"}, at(i)); err != nil {
			t.Fatal(err)
		}
		if i == 0 && l.start(at(n)) == nil {
			t.Fatal("nothing starts")
		}
	}
	return l
}

func TestOrder(t *testing.T) {
	t.Parallel()
	l := filled(t, 4)
	for _, tt := range []struct {
		name string
		do   func() error
		want string
		err  error
	}{
		{"towards the start", func() error { return l.move("4", -1) }, "1:running 2:queued 4:queued 3:queued", nil},
		{"not before the running one", func() error { return l.move("3", -9) }, "1:running 3:queued 2:queued 4:queued", nil},
		{"towards the end", func() error { return l.move("3", 1) }, "1:running 2:queued 3:queued 4:queued", nil},
		{"not past the end", func() error { return l.move("2", 99) }, "1:running 3:queued 4:queued 2:queued", nil},
		{"the running one", func() error { return l.move("1", 1) }, "1:running 3:queued 4:queued 2:queued", ErrState},
		{"none", func() error { return l.move("7", 1) }, "1:running 3:queued 4:queued 2:queued", ErrNotFound},
		{"one at a time", func() error {
			if s := l.start(at(9)); s != nil {
				return fmt.Errorf("%s starts", s.ID)
			}
			return nil
		}, "1:running 3:queued 4:queued 2:queued", nil},
		{"cancel a waiting one", func() error { _, err := l.cancel("4", at(9)); return err },
			"1:running 4:cancelled 3:queued 2:queued", nil},
		{"remove a waiting one", func() error { return l.remove("3") }, "1:running 4:cancelled 3:queued 2:queued", ErrState},
		{"remove an ended one", func() error { return l.remove("4") }, "1:running 3:queued 2:queued", nil},
	} {
		if err := tt.do(); !errors.Is(err, tt.err) || tt.err == nil && err != nil {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.err)
		}
		if got := show(l); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	l.end("1", Done, "", []string{"x"}, at(10))
	if s := l.start(at(11)); s == nil || s.ID != "3" || s.Out != "a-20261126-120011" {
		t.Errorf("after the end of 1 starts %+v", s)
	}
}

func TestCancelRunning(t *testing.T) {
	t.Parallel()
	l := filled(t, 1)
	if interrupt, err := l.cancel("1", at(2)); !interrupt || err != nil || l.Submissions[0].State != Running {
		t.Errorf("first: %v, %v, %s", interrupt, err, show(l))
	}
	interrupt, err := l.cancel("1", at(3))
	if interrupt || !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "already being cancelled") {
		t.Errorf("second: %v, %v", interrupt, err)
	}
	l.end("1", Cancelled, "", nil, at(4))
	if _, err := l.cancel("1", at(5)); !errors.Is(err, ErrState) || l.Submissions[0].Stopping {
		t.Errorf("ended: %v, %+v", err, l.Submissions[0])
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	l := &list{Paused: true}
	if _, err := l.add(Submission{Name: "a"}, at(0)); err != nil {
		t.Fatal(err)
	}
	if s := l.start(at(1)); s != nil {
		t.Errorf("a paused queue starts %+v", s)
	}
}

// Two submissions of one name that start in the same second have results of their own.
func TestSameSecond(t *testing.T) {
	t.Parallel()
	l := filled(t, 2)
	first := l.Submissions[0].Out
	l.end("1", Failed, "", nil, at(2))
	if second := l.start(at(2)); second == nil || second.Out == first || !strings.HasPrefix(second.Out, "a-") {
		t.Errorf("%q, then %+v", first, second)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", ".", "..", "../a", "a/b", "/etc", ".queue", "a\x00", "a b", "-a", "a.",
		strings.Repeat("a", 64)} {
		if _, err := new(list).add(Submission{Name: name}, at(0)); !errors.Is(err, ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	long := Submission{Name: "a", Text: strings.Repeat("x", MaxText+1)}
	if _, err := new(list).add(long, at(0)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a long text: %v", err)
	}
	l := filled(t, maxWaiting+1)
	if _, err := l.add(Submission{Name: "a"}, at(0)); !errors.Is(err, ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	for i := range 2 * maxEnded {
		id := l.Submissions[len(l.Submissions)-l.count(Queued)].ID
		if _, err := l.cancel(id, at(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.add(Submission{Name: "a"}, at(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.count(Cancelled); got != maxEnded || l.count(Running) != 1 || l.count(Queued) != maxWaiting {
		t.Errorf("%d ended, want %d; %d running, %d waiting", got, maxEnded, l.count(Running), l.count(Queued))
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	log := &tail{}
	if got := log.lines(); got != nil {
		t.Errorf("nothing written: %q", got)
	}
	for i := range 10000 {
		fmt.Fprintf(log, "line %d\n", i)
	}
	got := log.lines()
	if last := got[len(got)-1]; last != "line 9999" || len(log.end) > maxTail || !strings.HasPrefix(got[0], "line ") {
		t.Errorf("%d bytes, first %q, last %q", len(log.end), got[0], last)
	}
	if _, err := log.Write([]byte(strings.Repeat("x", 3*maxTail))); err != nil || len(log.lines()[0]) != maxTail {
		t.Errorf("one long line: %v, %d bytes", err, len(log.lines()[0]))
	}
}
