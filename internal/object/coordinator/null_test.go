package coordinator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/dist"
	"github.com/cnsbench/cnsbench/internal/object/capacity"
	"github.com/cnsbench/cnsbench/internal/object/nullserver"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// Each host goes to a null server of its own, none to the store, which is sent
// nothing; what each can do is known of each. One's server takes 10 ms.
func TestEachHostHasItsOwnNullServer(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	store := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer store.Close()
	slow, err := dist.Parse("10ms")
	if err != nil {
		t.Fatal(err)
	}
	var host, started, stopped, failing atomic.Int64
	b := hosts(t, 2, func(o *ServeOptions) {
		n := host.Add(1)
		o.Instead = capacity.NullServer(func(_ context.Context, size int64) (string, func() error, error) {
			if failing.Load() == n {
				return "", nil, errors.New("no port is left")
			}
			started.Add(1)
			s := nullserver.Options{Size: size, Sleep: run.PreciseSleep}
			if n == 2 {
				s.Delays = map[string]dist.Dist{"GET": slow}
			}
			return clienttest.Loopback(t, s.Serve), func() error { stopped.Add(1); return nil }, nil
		}).Instead
	})
	w := parse(t, `<workload name="reads"><storage type="s3" config="endpoint=`+store.URL+`;accesskey=a;secretkey=b"/><workflow><workstage name="main">
<work name="main" workers="4" runtime="1"><operation type="read" config="containers=c(1);objects=u(1,1000)"/></work></workstage></workflow></workload>`)
	f := dial(t, config(w, b.hosts))
	f.Observer = newNotes()
	r := f.OnNullServers(100)(t.Context(), t.Context(), &w.Stages[0])
	if r.Err != nil || len(r.Hosts) != 2 || started.Load() != 2 || stopped.Load() != 2 || asked.Load() != 0 {
		t.Fatalf("%v: %d hosts, %d servers, %d stopped, the store was asked %d times", r.Err, len(r.Hosts),
			started.Load(), stopped.Load(), asked.Load())
	}
	fast, limited := r.Hosts[0].PerSecond(), r.Hosts[1].PerSecond()
	if limited > 201 || limited < 20 || fast < limited { // two workers each
		t.Errorf("%.0f and %.0f operations a second, want the second's at most 200 and the first's above", fast,
			limited)
	}
	// Beside it stages go to the store, by the same hosts.
	if r := f.Stage(t.Context(), t.Context(), &w.Stages[0]); asked.Load() == 0 || started.Load() != 2 {
		t.Errorf("the store was asked %d times: %v", asked.Load(), r.Err)
	}
	// What one host cannot begin, none does, and none is lost for it.
	failing.Store(1)
	r = f.OnNullServers(100)(t.Context(), t.Context(), &w.Stages[0])
	if r.Err == nil || !strings.Contains(r.Err.Error(), "host h0") || !strings.Contains(r.Err.Error(),
		"no port is left") || r.Hosts[0].Lost != nil || r.Hosts[1].Lost != nil {
		t.Errorf("%v", r.Err)
	}
	for end := time.Now().Add(patience); stopped.Load() != started.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d servers were started, %d stopped", started.Load(), stopped.Load())
		}
	}
}
