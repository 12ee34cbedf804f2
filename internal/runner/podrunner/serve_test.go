package podrunner

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// Nobody fetches any more when no request is under way and none has come for a
// while.
func TestAsksAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asks{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(2 * silence) })}
		a.count(0)
		if a.over() {
			t.Error("over before anybody could ask")
		}
		go a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		// a second before and after the end of a request, and after the silence
		for at, want := range []bool{false, false, true} {
			time.Sleep([]time.Duration{2*silence - time.Second, 2 * time.Second, silence}[at])
			if a.over() != want {
				t.Errorf("step %d: over is %v", at, !want)
			}
		}
	})
}
