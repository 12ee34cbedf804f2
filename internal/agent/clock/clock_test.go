package clock_test

import (
	"context"
	"errors"
	"sort"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
)

func TestOffset(t *testing.T) {
	c := clock.New(3 * time.Second)
	if now := c.Now(); now < 3e9 || now > 3e9+1e9 {
		t.Errorf("reads %d", now)
	}
}

func TestWait(t *testing.T) {
	defer clock.MinimizeTimerSlack()()
	c := clock.New(-time.Hour)
	var late []time.Duration
	for i := range 40 {
		at := c.Now() + int64(i%8)*int64(time.Millisecond)
		if err := c.Wait(t.Context(), at, 300*time.Microsecond); err != nil {
			t.Fatal(err)
		}
		d := time.Duration(c.Now() - at)
		if d < 0 {
			t.Fatalf("woke %v early", -d)
		}
		late = append(late, d)
	}
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	t.Logf("late: median %v, max %v", late[20], late[39])
	if late[4] > 200*time.Microsecond { // of the best tenth, because other processes use the machine
		t.Errorf("lateness %v", late[4])
	}
}

func TestWaitIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c := clock.New(0)
	began := time.Now()
	if err := c.Wait(ctx, c.Now()+int64(time.Hour), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestTimer(t *testing.T) {
	c := clock.New(time.Minute)
	a, err := clock.NewTimer(c)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close() // the error is irrelevant in a test
	var late []time.Duration
	for range 40 {
		at := c.Now() + int64(3*time.Millisecond)
		if err := a.Wait(at); err != nil {
			t.Fatal(err)
		}
		late = append(late, time.Duration(c.Now()-at))
	}
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	t.Logf("late: median %v, max %v", late[20], late[39])
	if late[0] < 0 || late[4] > 500*time.Microsecond { // of the best tenth, because other processes use the machine
		t.Errorf("lateness: min %v, of the best tenth %v", late[0], late[4])
	}
	time.AfterFunc(20*time.Millisecond, a.Stop)
	if err := a.Wait(c.Now() + int64(time.Hour)); !errors.Is(err, clock.ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
	if err := a.Wait(c.Now() - 1); err != nil {
		t.Errorf("an instant that has passed: %v", err)
	}
}
