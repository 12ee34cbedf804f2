package operator

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestServerClock: the clock is the server's, to a second, when it is set too.
func TestServerClock(t *testing.T) {
	var ahead time.Duration // of the server
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()
	var clock serverClock
	client := http.Client{Transport: clock.wrap(http.DefaultTransport)}
	for _, ahead = range []time.Duration{0, time.Hour, -time.Hour, 10 * time.Second, 0} {
		a, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if d := clock.now().Sub(time.Now().Add(ahead)); d.Abs() > time.Second+10*time.Millisecond {
			t.Errorf("%v ahead: the clock differs by %v", ahead, d)
		}
	}
}

// TestServerClockObserve: a Date that the known difference explains changes nothing.
func TestServerClockObserve(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name  string
		ahead time.Duration // that is known
		date  time.Duration // after the request
		took  time.Duration
		want  time.Duration
	}{
		{"same second", 0, 0, time.Millisecond, 0},
		{"the second before", 0, -999 * time.Millisecond, time.Millisecond, 0},
		{"slow", 0, 30 * time.Second, time.Minute, 0},
		{"ahead", 0, time.Hour, 0, time.Hour + 500*time.Millisecond},
		{"behind", 0, -time.Hour, 2 * time.Second, -time.Hour - 500*time.Millisecond},
		{"known", time.Hour, time.Hour, 0, time.Hour},
		{"set back", time.Hour, 0, 0, 500 * time.Millisecond},
	}
	for _, tt := range tests {
		var c serverClock
		c.ahead.Store(int64(tt.ahead))
		c.observe(at.Add(tt.date), at, at.Add(tt.took))
		if got := time.Duration(c.ahead.Load()); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
