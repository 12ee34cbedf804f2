//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/servers"
)

// endpointsStore is versitygw; the verbs stand for its endpoints and for further settings.
const endpointsStore = `<storage type="s3" config="endpoints=%s;accesskey=test;secretkey=secret;%s"/>`

// endpointsWorkload reads and writes at several endpoints of one store; the verbs stand for that and for the end of the
// main work.
const endpointsWorkload = `<workload name="ends">%s<workflow>
<workstage name="init"><work type="init" workers="1" config="cprefix=cnsbench-ends-;containers=r(1,2)"/></workstage>
<workstage name="prepare"><work type="prepare" workers="2" config="cprefix=cnsbench-ends-;containers=r(1,2);objects=r(1,20);sizes=c(4)KiB"/></workstage>
<workstage name="main"><work name="main" workers="4" %s>
<operation type="read" ratio="70" config="cprefix=cnsbench-ends-;containers=u(1,2);objects=u(1,20);hashCheck=true"/>
<operation type="write" ratio="30" config="cprefix=cnsbench-ends-;containers=u(1,2);oprefix=new;objects=u(1,20);sizes=c(4)KiB"/>
</work></workstage>
<workstage name="cleanup"><work type="cleanup" workers="2" config="cprefix=cnsbench-ends-;containers=r(1,2);objects=r(1,20)"/>
<work name="new" type="cleanup" workers="2" config="cprefix=cnsbench-ends-;containers=r(1,2);oprefix=new;objects=r(1,20)"/></workstage>
<workstage name="dispose"><work type="dispose" workers="1" config="cprefix=cnsbench-ends-;containers=r(1,2)"/></workstage>
</workflow></workload>`

// twoServers starts two servers of the same buckets.
func twoServers(t *testing.T) (a, b *servers.Versity, list string) {
	a = servers.ForTest(t, servers.StartVersity)
	b = servers.ForTest(t, a.Peer)
	return a, b, a.Address + "," + b.Address
}

// endpointSums compares what a run has counted at an endpoint with what the server has, except for at most so many
// requests in flight when it was killed; it returns the successful reads and writes.
func (b *box) endpointSums(s *servers.Versity, inFlight float64) (reads, writes float64) {
	b.Helper()
	sums, name := b.sums(), strings.TrimPrefix(s.Address, "http://")
	got, err := s.Requests("myobjects")
	if err != nil {
		b.Fatal(err)
	}
	wrote, err := s.Requests("new")
	if err != nil {
		b.Fatal(err)
	}
	reads, writes = sums["main-0 read@"+name+".ok"], sums["main-0 write@"+name+".ok"]
	if math.Abs(reads-float64(got["s3_GetObject"])) > inFlight ||
		math.Abs(writes-float64(wrote["s3_PutObject"])) > inFlight || reads == 0 || writes == 0 {
		b.Errorf("%s: %v reads and %v writes; the server counts %v and %v", name, reads, writes, got, wrote)
	}
	return reads, writes
}

// TestObjectEndpoints: the figures by endpoint are those that each server has counted, and add up to the whole.
func TestObjectEndpoints(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"worker", "request"} {
		t.Run("by "+by, func(t *testing.T) {
			first, second, list := twoServers(t)
			b := newBox(t)
			r := b.run("object", "run", b.write("w.xml", fmt.Sprintf(endpointsWorkload,
				fmt.Sprintf(endpointsStore, list, "spread="+by), `totalOps="2000"`)), "--out", b.bundle()).wants(t, 0)
			reads, writes := b.endpointSums(first, 0)
			moreReads, moreWrites := b.endpointSums(second, 0)
			sums := b.sums()
			if reads+moreReads != sums["main-0 read.ok"] || writes+moreWrites != sums["main-0 write.ok"] ||
				reads+moreReads+writes+moreWrites != 2000 {
				t.Errorf("%v + %v reads, %v + %v writes; the whole: %v, %v", reads, moreReads, writes, moreWrites,
					sums["main-0 read.ok"], sums["main-0 write.ok"])
			}
			share, margin := (reads+writes)/2000, 0.4
			if by == "request" {
				margin = 0.001 // each of the four workers takes turns, and may do an odd number of operations
			}
			if math.Abs(share-0.5) > margin {
				t.Errorf("a share of %v", share)
			}
			if !strings.Contains(r.stdout, "By endpoint") || strings.Contains(r.stdout, "Outages") {
				t.Errorf("%v", r)
			}
		})
	}
}

// front passes requests on to a server, and counts the reads of myobjects and the writes of new that it answered.
type front struct {
	*httptest.Server
	reads, writes atomic.Int64
}

func newFront(t *testing.T, server string) *front {
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{}
	p := httputil.NewSingleHostReverseProxy(to)
	// Swift may send "0\r\n\r\n" after a response without a body, which net/http takes for the next response.
	p.Transport = &http.Transport{DisableKeepAlives: true}
	p.ModifyResponse = func(a *http.Response) error {
		switch path := a.Request.URL.Path; {
		case a.StatusCode/100 != 2:
		case a.Request.Method == http.MethodGet && strings.Contains(path, "/myobjects"):
			f.reads.Add(1)
		case a.Request.Method == http.MethodPut && strings.Contains(path, "/new"):
			f.writes.Add(1)
		}
		return nil
	}
	f.Server = httptest.NewServer(p)
	t.Cleanup(f.Close)
	return f
}

// TestObjectEndpointsOfSwift: as TestObjectEndpoints, with two proxy servers of one account. One token serves for both.
func TestObjectEndpointsOfSwift(t *testing.T) {
	t.Parallel()
	swift := servers.ForTest(t, servers.StartSwift)
	fronts := []*front{newFront(t, swift.Address), newFront(t, servers.ForTest(t, swift.Peer).Address)}
	store := fmt.Sprintf(`<auth type="tempauth" config="auth_url=%s;username=%s;password=%s"/>`+
		`<storage type="swift" config="endpoints=%s,%s;spread=request"/>`, swift.AuthURL, servers.SwiftUser,
		servers.SwiftPassword, fronts[0].URL, fronts[1].URL)
	b := newBox(t)
	b.run("object", "run", b.write("w.xml", fmt.Sprintf(endpointsWorkload, store, `totalOps="400"`)),
		"--out", b.bundle()).wants(t, 0)
	sums, all := b.sums(), 0.0
	for _, f := range fronts {
		name := strings.TrimPrefix(f.URL, "http://")
		reads, writes := sums["main-0 read@"+name+".ok"], sums["main-0 write@"+name+".ok"]
		if reads != float64(f.reads.Load()) || writes != float64(f.writes.Load()) || reads == 0 || writes == 0 {
			t.Errorf("%s: %v reads and %v writes; it answered %d and %d", name, reads, writes, f.reads.Load(),
				f.writes.Load())
		}
		all += reads + writes
	}
	if all != 400 || all != sums["main-0 read.ok"]+sums["main-0 write.ok"] {
		t.Errorf("%v at both; the whole: %v reads and %v writes", all, sums["main-0 read.ok"], sums["main-0 write.ok"])
	}
}

// TestObjectEndpointDies: one of two servers is killed in the main stage. Its outage is reported from then on, and what
// both have counted stays right.
func TestObjectEndpointDies(t *testing.T) {
	t.Parallel()
	const runtime = 8 * time.Second
	for _, policy := range []string{"keep", "leaveOut"} {
		t.Run(policy, func(t *testing.T) {
			first, second, list := twoServers(t)
			b := newBox(t)
			l := b.launch(b.command(context.Background(), b.cnsbench(), "object", "run", "--out", b.bundle(),
				b.write("w.xml", fmt.Sprintf(endpointsWorkload,
					fmt.Sprintf(endpointsStore, list, "on_endpoint_failure="+policy),
					fmt.Sprintf(`runtime="%d"`, int(runtime.Seconds()))))))
			l.until("the second server was read from", func() bool {
				n, err := second.Requests("myobjects")
				return err == nil && n["s3_GetObject"] > 0
			})
			time.Sleep(3 * time.Second)
			killed := time.Now()
			second.Stop()
			<-l.exited
			bundle, err := bundle.Open(b.bundle())
			if err != nil {
				t.Fatal(err)
			}
			name, sums := strings.TrimPrefix(second.Address, "http://"), b.sums()
			if n := len(bundle.Run.Outages); n == 0 || bundle.Run.Outages[0].Stage != "main" {
				t.Fatalf("outages: %+v\n%s", bundle.Run.Outages, l.errs.String())
			}
			o := bundle.Run.Outages[0]
			failed := sums["main-0 read@"+name+".failed"] + sums["main-0 write@"+name+".failed"]
			from := bundle.Run.Clock.Start.Add(time.Duration(o.From)).Sub(killed)
			if o.Endpoint != name || !o.Open || from < -time.Second || from > time.Second {
				t.Errorf("%+v began %v after the server was killed", o, from)
			}
			// Two workers try every 100 ms: for a second, or until the end.
			if most := map[string]float64{"keep": 130, "leaveOut": 40}[policy]; failed < 10 || failed > most ||
				math.Abs(failed-float64(o.Ops)) > 4 {
				t.Errorf("%v operations failed there, %d in the outage", failed, o.Ops)
			}
			b.endpointSums(first, 0)
			b.endpointSums(second, 2) // its workers' last requests may be answered and not logged, or the reverse
			for _, kind := range []string{"read", "write"} {
				ok := sums["main-0 "+kind+"@"+name+".ok"] +
					sums["main-0 "+kind+"@"+strings.TrimPrefix(first.Address, "http://")+".ok"]
				if ok != sums["main-0 "+kind+".ok"] || ok == 0 {
					t.Errorf("%s: %v at both, %v in all", kind, ok, sums["main-0 "+kind+".ok"])
				}
			}
			var flagged bool
			for _, f := range bundle.Run.Validity {
				flagged = flagged || f.Name == "outage" && strings.Contains(f.Evidence, name)
			}
			out := l.out.String()
			if !flagged || !strings.Contains(out, "Outages") || !strings.Contains(out, "outage") {
				t.Errorf("%v\n%s", bundle.Run.Validity, out)
			}
		})
	}
}
