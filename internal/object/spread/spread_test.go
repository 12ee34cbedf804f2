package spread_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/spread"
	"github.com/cnsbench/cnsbench/internal/op"
)

// servers count the operations that reach each of them. One that is away refuses.
type servers struct {
	clock op.Clock
	done  map[string]int
	away  map[string]bool
}

type server struct {
	*servers
	name string
}

func (s server) Client() (client.Client, error) { return s, nil }
func (s server) Describe() string               { return "store " + s.name }
func (s server) Abort()                         {}
func (s server) Close()                         {}

func (s server) Do(_ context.Context, _ *client.Request, res *client.Result) {
	*res = client.Result{Status: 200, Started: s.clock.Now()}
	time.Sleep(10 * time.Millisecond)
	if s.away[s.name] {
		res.Status, res.Failure = 0, httpconn.Refused
	}
	s.done[s.name]++
	res.Ended = s.clock.Now()
}

func open(t *testing.T, list string, settings map[string]string) (*servers, *spread.Store) {
	t.Helper()
	s := &servers{clock: op.NewClock(), done: map[string]int{}, away: map[string]bool{}}
	settings[spread.Endpoints] = list
	urls, err := spread.List(settings, "endpoint")
	if err != nil {
		t.Fatal(err)
	}
	store, err := spread.New(spread.Config{Settings: settings, URLs: urls, Clock: s.clock,
		Open: func(url, dial string) (client.Store, error) {
			name := strings.TrimPrefix(url, "http://")
			if dial != "" {
				name = dial
			}
			return server{s, name}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s, store
}

// do has each of the workers do n operations in turn, and returns how many failed.
func do(t *testing.T, store *spread.Store, clients []client.Client, n int) (failed int) {
	t.Helper()
	names, err := store.Names()
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		for _, c := range clients {
			var res client.Result
			c.Do(t.Context(), &client.Request{}, &res)
			if res.Endpoint >= len(names) {
				t.Fatalf("endpoint %d of %v", res.Endpoint, names)
			}
			if res.Failure != "" {
				failed++
			}
		}
	}
	return failed
}

func workers(t *testing.T, s *spread.Store, n int) (list []client.Client) {
	t.Helper()
	for i := range n {
		c, err := s.ClientOf(i)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		by   string
		n    int // workers
		want string
	}{
		{"worker", 4, "map[a:1:20 b:1:10 c:1:10]"}, {"worker", 1, "map[a:1:10]"},
		{"request", 1, "map[a:1:4 b:1:3 c:1:3]"}, {"request", 3, "map[a:1:10 b:1:10 c:1:10]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, store := open(t, "http://a:1, http://b:1,http://c:1", map[string]string{spread.By: tt.by})
			do(t, store, workers(t, store, tt.n), 10)
			if got := fmt.Sprint(s.done); got != tt.want {
				t.Errorf("%d workers by %s: %s, want %s", tt.n, tt.by, got, tt.want)
			}
		})
	}
}

func TestEndpointFails(t *testing.T) {
	for _, tt := range []struct {
		policy string
		failed int // of 3 s of operations with b away, and 3 s with b back
		back   bool
	}{
		{spread.Keep, 150, true}, {spread.LeaveOut, 51, false}, {spread.LeaveOutWhileDown, 53, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, store := open(t, "http://a:1,http://b:1", map[string]string{spread.OnFailure: tt.policy})
			clients := workers(t, store, 2)
			if n := do(t, store, clients, 50); n != 0 {
				t.Fatalf("%d failed with both", n)
			}
			began := s.clock.Now()
			s.away["b:1"] = true
			failed := do(t, store, clients, 150)
			s.away["b:1"] = false
			before := s.done["b:1"]
			failed += do(t, store, clients, 150)
			if d := failed - tt.failed; d < -1 || d > 1 {
				t.Errorf("%s: %d failed, want %d ± 1", tt.policy, failed, tt.failed)
			}
			if back := s.done["b:1"] > before+100; back != tt.back {
				t.Errorf("%s: %d operations after b was back", tt.policy, s.done["b:1"]-before)
			}
			list := store.Outages(0, s.clock.Now())
			if len(list) != 1 || list[0].Endpoint != "b:1" || list[0].Open == tt.back || list[0].Ops != int64(failed) {
				t.Fatalf("%s: %+v, %d failed", tt.policy, list, failed)
			}
			if d := time.Duration(list[0].From - began); d < 0 || d > 20*time.Millisecond {
				t.Errorf("%s: it begins after %v", tt.policy, d)
			}
			if d := time.Duration(list[0].To - list[0].From); tt.back && (d < 3*time.Second || d > 4100*time.Millisecond) {
				t.Errorf("%s: it lasted %v", tt.policy, d)
			}
			// Another stage sees only its own part.
			if list := store.Outages(0, began); len(list) != 0 {
				t.Errorf("before: %+v", list)
			}
		})
	}
}

// TestNoOutage: a server that serves every other operation is not down, and neither is one that fails twice.
func TestNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := open(t, "http://a:1,http://b:1", map[string]string{spread.OnFailure: spread.LeaveOut})
		clients := workers(t, store, 2)
		for i := range 300 {
			s.away["b:1"] = i%2 == 0
			do(t, store, clients, 1)
		}
		if list := store.Outages(0, s.clock.Now()); len(list) != 0 || s.done["b:1"] != 300 {
			t.Errorf("%+v; %v", list, s.done)
		}
	})
}

// TestAddresses: each address of a name is an endpoint, under the address.
func TestAddresses(t *testing.T) {
	_, store := open(t, "http://127.0.0.1:9/base/,http://127.0.0.2", map[string]string{spread.Addresses: "all"})
	names, err := store.Names()
	if want := []string{"127.0.0.1:9/base", "127.0.0.2:80"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v; want %v", names, err, want)
	}
	_, store = open(t, "http://no-such-name.invalid:9", map[string]string{spread.Addresses: "all"})
	if _, err := store.Client(); err == nil || !strings.Contains(err.Error(), "no-such-name.invalid") {
		t.Errorf("a name without an address: %v", err)
	}
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct{ list, key, value, want string }{
		{"http://a:1,http://a:1", "", "", "occurs twice"}, {"http://a:1", spread.By, "object", "want worker or request"},
		{"http://a:1", spread.OnFailure, "retry", "want keep, leaveOut or leaveOutWhileDown"},
		{"http://a:1", spread.Addresses, "some", "want any or all"}, {" , ", "", "", "has no address"},
		{"http://a:1", "endpoint", "http://b:1", "exclude each other"},
	} {
		settings := map[string]string{spread.Endpoints: tt.list}
		if tt.key != "" {
			settings[tt.key] = tt.value
		}
		urls, err := spread.List(settings, "endpoint")
		if err == nil {
			_, err = spread.New(spread.Config{Settings: settings, URLs: urls,
				Open: func(string, string) (client.Store, error) { return server{}, nil }})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q, %s=%s: %v, want %q", tt.list, tt.key, tt.value, err, tt.want)
		}
	}
}
