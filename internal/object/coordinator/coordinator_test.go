package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

const token = "a token of the tests' own"

// patience is for hosts on a machine that has other things to do; brief is the
// limit where one is to be lost by it.
const (
	patience = 30 * time.Second
	brief    = 4 * time.Second
)

// bench is hosts in this process, each with a clock of its own.
type bench struct {
	hosts []Host
	stop  []context.CancelFunc // of each host, as if it were killed
	done  []chan struct{}
}

func hosts(t *testing.T, n int, change func(*ServeOptions)) *bench {
	t.Helper()
	b := &bench{}
	for i := range n {
		time.Sleep(3 * time.Millisecond) // so that no two clocks agree
		clock := op.NewClock()
		o := ServeOptions{Token: token, Version: "test", Silence: patience, Clock: clock, Sleep: run.PreciseSleep,
			Say:   func(string) {},
			About: []byte(fmt.Sprintf(`{"host":%d}`, i)),
			Open: func(bool) func(*model.Store) (client.Store, error) {
				return (&backend.Opener{Clock: clock, Getenv: func(string) string { return "" }}).Store
			}}
		if change != nil {
			change(&o)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := Serve(ctx, l, o); err != nil {
				t.Error(err)
			}
		}()
		b.hosts = append(b.hosts, Host{fmt.Sprintf("h%d", i), l.Addr().String()})
		b.stop, b.done = append(b.stop, cancel), append(b.done, done)
	}
	t.Cleanup(func() {
		for i := range b.stop {
			b.stop[i]()
			<-b.done[i]
		}
	})
	return b
}

func parse(t *testing.T, xml string, hosts ...string) *model.Workload {
	t.Helper()
	w, problems := cosbench.Parse([]byte(xml), cosbench.Options{Hosts: hosts})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	return w
}

// files is a workload on files below root around a main stage.
func files(root, main string) string {
	return fmt.Sprintf(`<workload name="files"><storage type="file" config="root=%s"/><workflow>
<workstage name="init"><work type="init" workers="4" config="containers=r(1,4)"/></workstage>
<workstage name="prepare"><work type="prepare" workers="5" config="containers=r(1,4);objects=r(1,25);sizes=c(8)KB"/></workstage>
%s
<workstage name="cleanup"><work type="cleanup" workers="5" config="containers=r(1,4);objects=r(1,25)"/></workstage>
<workstage name="dispose"><work type="dispose" workers="3" config="containers=r(1,4)"/></workstage>
</workflow></workload>`, root, main)
}

func config(w *model.Workload, hosts []Host) Config {
	return Config{Workload: w, Hosts: hosts, Token: token, Version: "test", Clock: op.NewClock(), RunID: "r", Seed: 7,
		Grace: time.Second, Silence: patience, Sleep: run.PreciseSleep}
}

// notes are what an observer was told.
type notes struct {
	mu      sync.Mutex
	began   map[string]chan struct{} // closed when a stage has begun on a host
	seconds map[string]int64
	starts  map[string]op.Time
	idle    int // calls of Idle
}

func newNotes() *notes {
	return &notes{began: map[string]chan struct{}{}, seconds: map[string]int64{}, starts: map[string]op.Time{}}
}

func sum(cells loadgen.Cells) (n int64) {
	for _, c := range cells {
		n += c.N
	}
	return n
}

func (n *notes) StageBegan(*model.Stage, op.Time) {}
func (n *notes) Host(i int) HostObserver          { return note{n, i} }

type note struct {
	*notes
	host int
}

func (n note) Began(s *model.Stage, intended, at op.Time, err int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	begun := n.begun(fmt.Sprintf("%s on %d", s.Name, n.host))
	select {
	case <-begun: // in an earlier run of the stage
	default:
		close(begun)
	}
	n.starts[fmt.Sprintf("%s on %d", s.Name, n.host)] = at - intended
}
func (n note) Second(stage string, w *model.Work, from, to op.Time, cells loadgen.Cells, _ loadgen.Usage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seconds[fmt.Sprintf("%s/%s on %d", stage, w.Name, n.host)] += sum(cells)
	n.seconds[stage+"/"+w.Name] += sum(cells)
}
func (n note) Idle() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.idle++
}
func (n note) Ended(*loadgen.HostResult) {}

// begun is closed when a stage has begun on a host. The caller has the lock.
func (n *notes) begun(what string) chan struct{} {
	if n.began[what] == nil {
		n.began[what] = make(chan struct{})
	}
	return n.began[what]
}

func dial(t *testing.T, c Config) *Controller {
	t.Helper()
	f, err := Dial(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func carry(soft context.Context, f *Controller, n *notes) *loadgen.Result {
	f.Observer = n
	return loadgen.Sequence(soft, context.Background(), f.Workload, f.Stage, func(*loadgen.StageResult) {})
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	e, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

func TestHostsCarryOutAWorkloadTogether(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	main := `<workstage name="main"><work name="mixed" workers="7" totalOps="1001">
<operation type="read" ratio="80" config="containers=u(1,4);objects=u(1,25);hashCheck=true"/>
<operation type="write" ratio="20" config="containers=u(1,4);objects=u(1,25);sizes=c(8)KB"/></work>
<work name="pinned" workers="2" totalOps="10" driver="h1"><operation type="head" config="containers=u(1,4);objects=u(1,25)"/></work></workstage>
<workstage name="wait" closuredelay="1"><work type="delay"/></workstage>
<workstage name="timed"><work name="timed" workers="6" runtime="2" interval="1" rate="constant(500)"><operation type="head" config="containers=u(1,4);objects=u(1,25)"/></work></workstage>`
	b := hosts(t, 3, nil)
	time.Sleep(5 * time.Millisecond) // the clock of the run begins
	w := parse(t, files(root, main), "h0", "h1", "h2")
	f := dial(t, config(w, b.hosts))
	n := newNotes()
	r := carry(t.Context(), f, n)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if left := entries(t, root); left != 0 {
		t.Errorf("%d things are left", left)
	}
	want := map[string]int64{"init/init": 4, "prepare/prepare": 100, "main/mixed": 1001, "main/pinned": 10,
		"timed/timed": 1000, "cleanup/cleanup": 100, "dispose/dispose": 4}
	got, byHost := map[string]int64{}, map[string]int64{}
	for _, s := range r.Stages {
		for _, w := range s.Works {
			got[s.Name+"/"+w.Work.Name] = sum(w.Cells)
		}
		for _, h := range s.Hosts {
			for _, w := range h.Works {
				byHost[s.Name+"/"+w.Work.Name] += sum(w.Cells)
				if s.Name == "timed" && (sum(w.Cells) < 300 || w.Work.Workers != 2) {
					t.Errorf("host %s did %d operations of the rate with %d workers", h.Host, sum(w.Cells),
						w.Work.Workers)
				}
				if w.Work.Name == "pinned" && h.Host != "h1" {
					t.Errorf("host %s did what was for h1", h.Host)
				}
			}
			// When to begin was told by what was known of its clock then, so that it may begin too early by that error.
			if skew := h.Start - h.Intended; s.Name != "wait" &&
				(int64(skew) < -h.StartErr-int64(time.Millisecond) || skew > op.Time(3*time.Second)) {
				t.Errorf("host %s began %s %v ± %v after the agreed instant", h.Host, s.Name, time.Duration(skew),
					time.Duration(h.StartErr))
			}
		}
	}
	if shares := len(b.hosts) * len(r.Stages); n.idle != shares {
		t.Errorf("%d hosts were idle after their share, want %d", n.idle, shares)
	}
	for name, want := range want {
		// What was due at the very end of the rate may fall to either side of it.
		if d := want - got[name]; d < 0 || d > 0 && (name != "timed/timed" || d > 3) {
			t.Errorf("%s: %d operations, want %d", name, got[name], want)
		}
		if byHost[name] != got[name] || n.seconds[name] != got[name] {
			t.Errorf("%s: %d operations together, %d by host, %d in seconds", name, got[name], byHost[name],
				n.seconds[name])
		}
	}
	if s := r.Stages[3]; s.Ended-s.Began < op.Time(time.Second) {
		t.Errorf("the delay was of %v", time.Duration(s.Ended-s.Began))
	}
	offsets, errs := f.Offsets()
	for i := range offsets {
		if offsets[i] < int64(time.Millisecond) || errs[i] <= 0 || errs[i] > int64(100*time.Millisecond) {
			t.Errorf("host %d: its clock is %v ± %v from ours", i, time.Duration(offsets[i]), time.Duration(errs[i]))
		}
	}
}

// What is due on a host that begins late is due as on the others: its lateness is
// in its responses, and none of the schedule is missing or later.
func TestLateHost(t *testing.T) {
	t.Parallel()
	const late = 400 * time.Millisecond
	b := hosts(t, 1, nil)
	slow := hosts(t, 1, func(o *ServeOptions) {
		sleep := o.Sleep
		first := true
		o.Sleep = func(ctx context.Context, until time.Time) bool {
			if first {
				first = false
				until = until.Add(late)
			}
			return sleep(ctx, until)
		}
	})
	slow.hosts[0].Name = "slow"
	w := parse(t, `<workload name="w"><storage type="null"/><workflow><workstage name="main"><work name="main" workers="8" runtime="2" rate="constant(200)">
<operation type="head" config="containers=c(1);objects=u(1,25)"/></work></workstage></workflow></workload>`)
	r := carry(t.Context(), dial(t, config(w, append(b.hosts, slow.hosts...))), newNotes())
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, h := range r.Stages[0].Hosts {
		figures, err := h.Works[0].Figures()
		if err != nil {
			t.Fatal(err)
		}
		f := figures[0]
		behind := time.Duration(f.Cell.Late.Max())
		if n := f.OK + f.Lost; n < 199 || n > 200 || h.Host == "slow" && (behind < late-20*time.Millisecond ||
			time.Duration(h.Start-h.Intended) < late) || h.Works[0].To-h.Works[0].From != op.Time(2*time.Second) {
			t.Errorf("host %s: %d of 200 were due, up to %v late, in a window of %v", h.Host, n, behind,
				time.Duration(h.Works[0].To-h.Works[0].From))
		}
	}
}

func TestDialRefused(t *testing.T) {
	good, other, newer, busy := hosts(t, 1, nil), hosts(t, 1,
		func(o *ServeOptions) { o.Token = "quite another token" }),
		hosts(t, 1, func(o *ServeOptions) { o.Version = "v9" }), hosts(t, 1, nil)
	w := parse(t, files(t.TempDir(), ""))
	dial(t, config(w, busy.hosts))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	defer silent.Close()
	list := func(b *bench, name string) Host { return Host{name, b.hosts[0].Address} }
	all := []Host{list(good, "good"), list(other, "other"), list(newer, "newer"), list(busy, "busy"),
		{"web", silent.Addr().String()}, {"nobody", "127.0.0.1:1"}}
	_, err = Dial(t.Context(), config(w, all))
	if !errors.Is(err, message.ErrToken) || !errors.Is(err, message.ErrVersion) || !errors.Is(err, message.ErrBusy) {
		t.Errorf("%v", err)
	}
	for _, says := range []string{"host other (", "host newer (", "host busy (", "host web (", "host nobody (",
		"connection refused", "version test", "in use by the controller at"} {
		if !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%q is not in %v", says, err)
		}
	}
	if strings.Contains(fmt.Sprint(err), "host good") {
		t.Errorf("%v", err)
	}
	free(t, config(w, good.hosts)) // again
	short := config(w, good.hosts)
	short.Token = "short"
	if _, err := Dial(t.Context(), short); err == nil {
		t.Error("a short token was taken")
	}
}

// free waits until hosts can be had: within a bounded time of the loss of whoever
// had them.
func free(t *testing.T, c Config) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		f, err := Dial(t.Context(), c)
		if err == nil {
			f.Close()
			return
		}
		if !errors.Is(err, message.ErrBusy) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// when does something once a stage has been under way on a host for a while.
func when(t *testing.T, n *notes, what string, after time.Duration, do func()) {
	go func() {
		n.mu.Lock()
		begun := n.begun(what)
		n.mu.Unlock()
		select {
		case <-begun:
			time.Sleep(after)
			do()
		case <-t.Context().Done():
		}
	}()
}

const timed = `<workstage name="main"><work name="main" workers="6" runtime="4" rate="constant(300)"><operation type="head" config="containers=u(1,4);objects=u(1,25)"/></work></workstage>
<workstage name="after"><work name="after" workers="6" totalOps="10"><operation type="head" config="containers=u(1,4);objects=u(1,25)"/></work></workstage>`

// A host that goes in the middle of a stage is named; what it had told of is
// kept; the others end the stage and clean up for it too.
func TestLostHost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, b *bench) (hosts []Host, lose func()){
		"gone": func(_ *testing.T, b *bench) ([]Host, func()) { return b.hosts, b.stop[1] },
		"silent": func(t *testing.T, b *bench) ([]Host, func()) {
			cable := agenttest.NewProxy(t, b.hosts[1].Address, 0, 0)
			return []Host{b.hosts[0], {b.hosts[1].Name, cable.Address()}, b.hosts[2]}, cable.Cut
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			b := hosts(t, 3, func(o *ServeOptions) { o.Silence = brief })
			hosts, gone := lose(t, b)
			w := parse(t, files(root, timed))
			c := config(w, hosts)
			c.Silence = brief
			f := dial(t, c)
			n := newNotes()
			when(t, n, "main on 1", 1500*time.Millisecond, gone)
			r := carry(t.Context(), f, n)
			if r.Err == nil || !strings.Contains(r.Err.Error(), "stage main: host h1 (") ||
				!strings.Contains(r.Err.Error(), "is lost") {
				t.Fatalf("%v", r.Err)
			}
			if left := entries(t, root); left != 0 {
				t.Errorf("%d things are left", left)
			}
			main := r.Stages[2]
			if !r.Stages[3].Skipped || r.Stages[4].Skipped || r.Stages[4].Err != nil || r.Stages[5].Err != nil {
				t.Errorf("after: %+v, cleanup: %v, dispose: %v", r.Stages[3].Skipped, r.Stages[4].Err, r.Stages[5].Err)
			}
			for _, h := range main.Hosts {
				did, lost := sum(h.Works[0].Cells), int64(0)
				if c := h.Works[0].Cells[loadgen.Key{Label: loadgen.Unknown, Lost: true}]; c != nil {
					lost = c.N
					did -= lost
				}
				switch {
				case h.Host != "h1" && (h.Lost != nil || h.Err != nil || did < 397 || did > 400):
					t.Errorf("host %s did %d operations: %v", h.Host, did, h.Err)
				case h.Host == "h1" && (h.Lost == nil || did < 70 || did > 399 || did+lost < 398 || did+lost > 400 ||
					len(h.Missing) != 1 || !strings.Contains(h.Missing[0], "2 of 6 workers")):
					t.Errorf("host %s did %d operations, %d are lost: %v, %q", h.Host, did, lost, h.Lost, h.Missing)
				}
			}
			if got := sum(r.Stages[4].Works[0].Cells); got != 100 {
				t.Errorf("%d deletes, want 100", got)
			}
			if name == "silent" { // to the host it is the controller that is lost
				free(t, config(w, b.hosts[1:2]))
			}
		})
	}
}

// slowly deletes: it is not done before the test has looked.
type slowly struct{ client.Store }

func (s slowly) Client() (client.Client, error) {
	c, err := s.Store.Client()
	return slowClient{c}, err
}

type slowClient struct{ client.Client }

func (c slowClient) Do(ctx context.Context, r *client.Request, res *client.Result) {
	if r.Verb == client.Delete {
		time.Sleep(200 * time.Millisecond)
	}
	c.Client.Do(ctx, r, res)
}

// What a host was cleaning up when it was lost the others clean up.
func TestLostWhileCleaningUp(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := hosts(t, 2, nil)
	slow := hosts(t, 1, func(o *ServeOptions) {
		open := o.Open(false)
		o.Open = func(bool) func(*model.Store) (client.Store, error) {
			return func(m *model.Store) (client.Store, error) {
				s, err := open(m)
				return slowly{s}, err
			}
		}
	})
	slow.hosts[0].Name = "slow"
	w := parse(t, files(root, ""))
	f := dial(t, config(w, append(b.hosts, slow.hosts...)))
	n := newNotes()
	when(t, n, "cleanup on 2", 0, slow.stop[0])
	r := carry(t.Context(), f, n)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "host slow") {
		t.Fatalf("%v", r.Err)
	}
	if left := entries(t, root); left != 0 {
		t.Errorf("%d things are left; %v", left, r.Err)
	}
	lost := ""
	for _, s := range r.Stages {
		for _, h := range s.Hosts {
			if h.Lost != nil {
				lost += s.Name + ": " + strings.Join(h.Missing, "; ")
			}
		}
	}
	if !strings.Contains(lost, "the other hosts did what was left of it") {
		t.Errorf("lost: %q", lost)
	}
}

// The first interrupt ends the works of all hosts and goes on with cleaning up.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := hosts(t, 2, nil)
	w := parse(t, strings.Replace(files(root, timed), `runtime="4"`, `runtime="600"`, 1))
	f := dial(t, config(w, b.hosts))
	n := newNotes()
	soft, end := context.WithCancel(t.Context())
	defer end()
	when(t, n, "main on 0", 300*time.Millisecond, end)
	began := time.Now()
	r := carry(soft, f, n)
	if !r.Interrupted || r.Err != nil || time.Since(began) > time.Minute {
		t.Errorf("interrupted %v, %v, after %v", r.Interrupted, r.Err, time.Since(began))
	}
	if left := entries(t, root); left != 0 {
		t.Errorf("%d things are left", left)
	}
}

// Hosts whose controller is gone stop, clean up nothing, and are free.
func TestLostController(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := hosts(t, 2, nil)
	w := parse(t, strings.Replace(files(root, timed), `runtime="4"`, `runtime="600"`, 1))
	f, err := Dial(t.Context(), config(w, b.hosts))
	if err != nil {
		t.Fatal(err)
	}
	n := newNotes()
	ended := make(chan *loadgen.Result)
	when(t, n, "main on 0", 300*time.Millisecond, func() {
		for _, p := range f.peers {
			_ = p.conn.Close()
		}
	})
	go func() { ended <- carry(t.Context(), f, n) }()
	if r := <-ended; r.Err == nil {
		t.Error("it did not notice")
	}
	f.Close()
	free(t, config(w, b.hosts))
	if left := entries(t, root); left != 4 {
		t.Errorf("%d of 4 containers are left", left)
	}
}

// A stage that one host cannot begin begins nowhere.
func TestHostThatCannotBegin(t *testing.T) {
	root := t.TempDir()
	b := hosts(t, 2, nil)
	bad := hosts(t, 1, func(o *ServeOptions) {
		o.Open = func(bool) func(*model.Store) (client.Store, error) {
			return func(*model.Store) (client.Store, error) { return nil, errors.New("no store here") }
		}
	})
	bad.hosts[0].Name = "bad"
	w := parse(t, files(root, ""))
	r := carry(t.Context(), dial(t, config(w, append(b.hosts, bad.hosts...))), newNotes())
	if r.Err == nil || !strings.Contains(r.Err.Error(), "stage init: host bad (") ||
		!strings.Contains(r.Err.Error(), "no store here") {
		t.Errorf("%v", r.Err)
	}
	if left := entries(t, root); left != 0 {
		t.Errorf("%d things were made", left)
	}
}

func TestParseHosts(t *testing.T) {
	got, err := ParseHosts("a=10.0.0.1:90, 10.0.0.2:90,b=[::1]:91")
	if err != nil || len(got) != 3 || got[0] != (Host{"a", "10.0.0.1:90"}) ||
		got[1] != (Host{"10.0.0.2:90", "10.0.0.2:90"}) || got[2] != (Host{"b", "[::1]:91"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "a", "a=", "=h:1", "h:1,", "h:", ":1", "h:1,h:1", "a=h:1,a=g:1", "a=h:1,b=h:1"} {
		if got, err := ParseHosts(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
