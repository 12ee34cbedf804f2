package nullserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/dist"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

func ask(t *testing.T, method, url string) time.Duration {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return time.Since(began)
}

func parsed(t *testing.T, text string) dist.Dist {
	t.Helper()
	d, err := dist.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Each verb takes what was drawn for it, and the truth says so; what is no
// operation is answered at once.
func TestDelays(t *testing.T) {
	truth := &Truth{}
	o := Options{Size: 100, Delays: map[string]dist.Dist{"GET": parsed(t, "30ms"),
		Every: parsed(t, "uniform(5ms,10ms)")}, Seed: 1, Sleep: clienttest.Sleep, Truth: truth}
	at := clienttest.Loopback(t, o.Serve)
	for _, tt := range []struct {
		method, path string
		least        time.Duration
	}{{"GET", "/b/o", 30 * time.Millisecond}, {"PUT", "/b/o", 5 * time.Millisecond},
		{"GET", "/b?list-type=2", 5 * time.Millisecond}, {"PUT", "/b", 0}, {"GET", "/b/.cnsbench-owner", 0},
		{"GET", "/auth/v1.0", 0}, {"GET", CountsPath, 0}} {
		if took := ask(t, tt.method, at+tt.path); took < tt.least {
			t.Errorf("%s %s took %v, want at least %v", tt.method, tt.path, took, tt.least)
		}
	}
	for verb, want := range map[string]int64{"GET": 1, "PUT": 1, "LIST": 1, "HEAD": 0} {
		if s := truth.Of(verb); s.Whole.N() != want || s.Delay.N() != want || s.Whole.Min() < s.Delay.Min() {
			t.Errorf("%s: %d answers of at least %d ns, delayed %d", verb, s.Whole.N(), s.Whole.Min(), s.Delay.Min())
		}
	}
	var b bytes.Buffer
	if err := truth.Write(&b, &o); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int64{}
	for lines := bufio.NewScanner(&b); lines.Scan(); {
		var l struct {
			Event, Verb string
			Whole       *hist.Histogram
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Event == "served" {
			seen[l.Verb] = l.Whole.N()
		}
	}
	if len(seen) != 3 || seen["LIST"] != 1 {
		t.Errorf("the truth has %v", seen)
	}
}

// What is drawn depends on the seed and the number of the request alone.
func TestDrawsAreAFunctionOfTheSeed(t *testing.T) {
	draws := func(seed uint64) (list []time.Duration) {
		h := newHolder(Options{Delays: map[string]dist.Dist{Every: parsed(t, "exp(5ms)")}, Seed: seed})
		for range 10 {
			list = append(list, h.draw("GET"))
			h.draw("PUT")
		}
		return list
	}
	if a, b, c := fmt.Sprint(draws(1)), fmt.Sprint(draws(1)), fmt.Sprint(draws(2)); a != b || a == c {
		t.Errorf("%s, %s with the same seed, %s with another", a, b, c)
	}
}

// So many are dealt with at a time: capacity is concurrency over time of service.
func TestConcurrency(t *testing.T) {
	truth := &Truth{}
	at := clienttest.Loopback(t, Options{Size: 1, Delays: map[string]dist.Dist{"GET": parsed(t, "20ms")},
		Concurrency: 2, Sleep: clienttest.Sleep, Truth: truth}.Serve)
	began := time.Now()
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() { ask(t, "GET", at+"/b/o") })
	}
	wait.Wait()
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("10 requests of 20 ms, 2 at a time, took %v", took)
	}
	s := truth.Of("GET")
	if queued := time.Duration(s.Queued.Max()); queued < 60*time.Millisecond {
		t.Errorf("the last waited %v for its turn, want about 80 ms", queued)
	}
}

// A stall holds what comes in it to its end, and nothing before or after.
func TestStall(t *testing.T) {
	truth := &Truth{}
	at := clienttest.Loopback(t, Options{Size: 1, StallAt: 500 * time.Millisecond, StallFor: time.Second,
		Sleep: clienttest.Sleep, Truth: truth}.Serve)
	ask(t, "PUT", at+"/b") // no operation: the clock does not begin
	time.Sleep(550 * time.Millisecond)
	ask(t, "GET", at+"/b/o")
	if held := time.Since(truth.First()); held > 1400*time.Millisecond {
		t.Errorf("before the stall: %v", held)
	}
	time.Sleep(600*time.Millisecond - time.Since(truth.First()))
	took := ask(t, "GET", at+"/b/o")
	if at := time.Since(truth.First()); at < 1500*time.Millisecond {
		t.Errorf("in the stall, which ends after 1.5s: answered in %v after %v", took, at)
	}
	for range 5 { // a busy machine may hold up some
		if took = ask(t, "GET", at+"/b/o"); took < 150*time.Millisecond {
			return
		}
	}
	t.Errorf("after the stall: %v", took)
}
