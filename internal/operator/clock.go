package operator

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverClock is the clock of the API server, by the Date of its responses. The times of objects are of that clock,
// from which this machine's may differ by more than a timeout. It is safe for concurrent use.
type serverClock struct {
	ahead atomic.Int64 // of this machine's clock, in ns
}

// now is the server's time, to about a second.
func (c *serverClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// wrap returns a transport that reads the Date of each response.
func (c *serverClock) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		sent := time.Now()
		a, err := next.RoundTrip(q)
		if err == nil {
			if date, err := http.ParseTime(a.Header.Get("Date")); err == nil {
				c.observe(date, sent, time.Now())
			}
		}
		return a, err
	})
}

// observe adjusts the difference if it does not explain the Date of a response, which has whole seconds and is from any
// instant between request and response.
func (c *serverClock) observe(date, sent, received time.Time) {
	least, most := date.Sub(received), date.Add(time.Second).Sub(sent)
	if ahead := time.Duration(c.ahead.Load()); ahead < least || ahead > most {
		c.ahead.Store(int64((least + most) / 2))
	}
}

// roundTripper is a transport that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
