package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// fleet is a set of workers on loopback. Each worker is a separate process.
type fleet struct {
	*box
	workers []*live
	hosts   string // value of --hosts
	store   string // the directory that the workers write to
}

func newFleet(t *testing.T, n int) *fleet {
	f := &fleet{box: newBox(t)}
	f.store = f.in("store")
	if err := os.Mkdir(f.store, 0o755); err != nil {
		t.Fatal(err)
	}
	f.token("token", "a token of this test's own")
	var hosts []string
	for i := range n {
		w := f.start(f.cnsbench(), "object", "worker", "--listen", "127.0.0.1:0", "--token-file", f.in("token"))
		w.until("it listens", func() bool { return strings.Contains(w.out.String(), "\n") })
		f.workers = append(f.workers, w)
		hosts = append(hosts, fmt.Sprintf("h%d=%s", i, strings.TrimSpace(w.out.String())))
	}
	f.hosts = strings.Join(hosts, ",")
	return f
}

func (f *fleet) token(name, text string) {
	if err := os.WriteFile(f.in(name), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
}

// workload returns a file-based workload whose main stage takes the given number of seconds.
func (f *fleet) workload(seconds int) string {
	return f.write("w.xml", fmt.Sprintf(`<workload name="hosts"><storage type="file" config="root=%s"/><workflow>
<workstage name="init"><work type="init" workers="4" config="containers=r(1,4)"/></workstage>
<workstage name="prepare"><work type="prepare" workers="5" config="containers=r(1,4);objects=r(1,25);sizes=c(8)KB"/></workstage>
<workstage name="main"><work name="main" workers="6" runtime="%d" rate="constant(300)"><operation type="read" config="containers=u(1,4);objects=u(1,25);hashCheck=true"/></work></workstage>
<workstage name="cleanup"><work type="cleanup" workers="5" config="containers=r(1,4);objects=r(1,25)"/></workstage>
<workstage name="dispose"><work type="dispose" workers="3" config="containers=r(1,4)"/></workstage>
</workflow></workload>`, f.store, seconds))
}

func (f *fleet) args(file string, more ...string) []string {
	return append([]string{"object", "run", file, "--hosts", f.hosts, "--token-file", f.in("token"), "--out",
		f.bundle()}, more...)
}

// left returns the number of containers that still exist.
func (f *fleet) left() int {
	e, err := os.ReadDir(f.store)
	if err != nil {
		f.Fatal(err)
	}
	return len(e)
}

func (f *fleet) open() *bundle.Bundle {
	b, err := bundle.Open(f.bundle())
	if err != nil {
		f.Fatal(err)
	}
	if err := b.Verify(); err != nil {
		f.Error(err)
	}
	return b
}

// TestObjectHosts checks a workload on three hosts: each does a third of the operations, and the
// bundle has the starts and the environment of each host.
func TestObjectHosts(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	r := f.run(f.args(f.workload(2))...).wants(t, 0)
	if !strings.Contains(r.stdout, "By host") || f.left() != 0 {
		t.Errorf("%d containers are left\n%v", f.left(), r)
	}
	if n := strings.Count(f.read(f.in("bundle", "raw", "cosbench", "csv", "s3-main.csv")), "\n"); n < 2+2 {
		t.Errorf("COSBench's file of the main stage has %d lines", n)
	}
	b := f.open()
	ok, starts := map[string]float64{}, 0
	for s, err := range b.Scalars() {
		if err != nil {
			t.Fatal(err)
		}
		if s.Metric == "read.ok" {
			ok[s.Instance] = s.Value
		}
	}
	for _, host := range []string{"main-0", "main-1", "main-2"} {
		if ok[host] < 195 || ok[host] > 201 {
			t.Errorf("%s did %v operations of a third of 600", host, ok[host])
		}
	}
	instances, err := b.Instances()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range instances {
		for _, s := range i.Starts {
			if starts++; s.Err <= 0 || s.At < s.Intended-1e6 || s.At > s.Intended+1e9 {
				t.Errorf("%s began at %d ± %d, not at %d", i.Name, s.At, s.Err, s.Intended)
			}
		}
	}
	if starts < 13 {
		t.Errorf("the bundle has the starts of %d works", starts)
	}
	text, err := os.ReadFile(f.in("bundle", "environment.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Engine struct {
			Hosts []struct {
				Name        string
				ClockErrNs  int64
				Environment bundle.Environment
			}
		}
	}
	if err := json.Unmarshal(text, &e); err != nil || len(e.Engine.Hosts) != 3 || e.Engine.Hosts[2].Name != "h2" ||
		e.Engine.Hosts[2].ClockErrNs <= 0 || e.Engine.Hosts[2].Environment.CPU.Count < 1 {
		t.Errorf("hosts of the environment: %+v, %v", e.Engine.Hosts, err)
	}
}

// slowReads returns a workload with a stage of reads from a null server that delays each read by 50
// ms. flags are further flags of the null server.
func (f *fleet) slowReads(flags ...string) string {
	s := f.start(f.cnsbench(), append([]string{"object", "null-server", "--delay", "GET=50ms"}, flags...)...)
	s.until("it listens", func() bool { return strings.Contains(s.out.String(), "\n") })
	return f.write("w.xml", fmt.Sprintf(`<workload name="reads"><storage type="s3" config="endpoint=%s;accesskey=a;secretkey=b"/><workflow>
<workstage name="main"><work name="main" workers="4" runtime="2"><operation type="read" config="containers=c(1);objects=u(1,50)"/></work></workstage>
</workflow></workload>`, strings.TrimSpace(s.out.String())))
}

// TestObjectHostsCeiling checks that each host measures its own ceiling with a null server that it
// starts and stops, and that its figures are compared with this ceiling.
func TestObjectHostsCeiling(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	r := f.run(f.args(f.slowReads(), "--ceiling", "--ceiling-for", "1s")...).wants(t, 0)
	said := strings.Join(strings.Fields(r.said()), " ") // where its lines end depends on the figures
	// Where a host had to wait for the machine's CPUs, the evidence is that of this host.
	want := []string{"h0: at ", "h1: at "}
	if strings.Contains(said, "client-bound") {
		want = []string{": at "}
	}
	n := strings.Count(said, "of this client's own ceiling of")
	for _, w := range want {
		if !strings.Contains(said, w) || n < len(want) {
			t.Errorf("%d ceilings, want %q\n%v", n, w, r)
		}
	}
	ceilings := f.scalars("main.ceiling")
	// The delay of the slow server limits each host to 40 operations per second.
	if len(ceilings) != 2 || ceilings["driver-0"] < 100 || ceilings["driver-1"] < 100 {
		t.Errorf("ceilings %v\n%v", ceilings, r)
	}
	f.noneOf("object", "null-server", "--while-input")
}

// TestObjectHostsFindMax checks that the maximum rate of two hosts together is found. Their four
// workers can do 80 operations per second, so a step at 120 fails. Each window in which the condition
// held has operations of both hosts.
func TestObjectHostsFindMax(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	r := f.run(f.args(f.slowReads(), "--find-max", "p50(read) < 200ms", "--find-from", "30", "--find-resolution", "1",
		"--window", "1s", "--warm-up", "500ms")...).wants(t, 0)
	var m struct {
		Verdict   string
		PerSecond float64
		Above     float64
		Steps     []struct {
			Stage                       string
			PerSecond, OfferedPerSecond float64
			Held                        bool
		}
	}
	if err := json.Unmarshal([]byte(f.read(f.in("bundle", "raw", "cnsbench", "find-max", "find-max.json"))),
		&m); err != nil {
		t.Fatal(err)
	}
	if m.Verdict != "found" || m.PerSecond > 60 || m.Above > 120 ||
		!strings.Contains(r.stdout, "main: p50(read) < 200ms holds up to") {
		t.Errorf("%+v\n%v", m, r)
	}
	ok := f.scalars("read.ok")
	for _, s := range m.Steps {
		if s.OfferedPerSecond < s.PerSecond/3 || s.OfferedPerSecond > 3*s.PerSecond {
			t.Errorf("%+v: offered at another rate", s)
		}
		for _, host := range []string{"-0", "-1"} {
			// Where the condition failed, the operations that are due in the window can all end after it.
			if n, has := ok[s.Stage+host]; !has || s.Held && n == 0 {
				t.Errorf("%+v: host %s did %v", s, host, n)
			}
		}
	}
}

// scalars returns the values of a metric in the bundle by instance.
func (f *fleet) scalars(metric string) map[string]float64 {
	values := map[string]float64{}
	for s, err := range f.open().Scalars() {
		if err != nil {
			f.Fatal(err)
		}
		if s.Metric == metric {
			values[s.Instance] = s.Value
		}
	}
	return values
}

// TestObjectHostsScaleWorkers checks that a stage is scaled over the workers of two hosts. Each
// host has half of the workers, and the figures cover both, although the hosts need not start at
// the same instant. A worker can do 20 operations per second, the server 80.
func TestObjectHostsScaleWorkers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	r := f.run(f.args(f.slowReads("--concurrency", "4"), "--scale-workers", "2,4,8", "--window", "2s", "--warm-up",
		"200ms")...).wants(t, 0)
	var s struct {
		Knee struct{ Levels []any }
		Rows []struct {
			Workers   int
			PerSecond []float64
		}
	}
	if err := json.Unmarshal([]byte(f.read(f.in("bundle", "raw", "cnsbench", "scale-workers", "scale-workers.json"))),
		&s); err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 3 || len(s.Knee.Levels) != 3 || !strings.Contains(r.stdout, "for each doubling of the workers") {
		t.Fatalf("%+v\n%v", s, r)
	}
	ok := f.scalars("read.ok")
	for i, workers := range []int{2, 4, 8} {
		row, step := s.Rows[i], fmt.Sprintf("main.w%d.r1", workers)
		both := ok[step+"-0"] + ok[step+"-1"]
		if row.Workers != workers || len(row.PerSecond) != 1 || math.Abs(2*row.PerSecond[0]-both) > 0.1*both ||
			both > 1.1*2*20*float64(min(workers, 4)) || ok[step+"-0"] == 0 || ok[step+"-1"] == 0 {
			t.Errorf("%+v: the hosts did %v and %v in 2 s\n%v", row, ok[step+"-0"], ok[step+"-1"], r)
		}
	}
}

// noneOf waits until no process of the box has these words in its command line.
func (f *fleet) noneOf(words ...string) {
	f.Helper()
	there := ""
	ended := poll(patience, func() bool {
		there = ""
		for _, p := range f.processes() {
			if strings.Contains(p.command, strings.Join(words, " ")) {
				there = p.command
			}
		}
		return there == ""
	})
	if !ended {
		f.Fatalf("still there: %s", there)
	}
}

// busy waits until the workers read objects of files.
func (f *fleet) busy(l *live) {
	f.Helper()
	before := f.reads()
	l.until("the workers read", func() bool { return f.reads() > before+64<<10 })
}

// TestObjectHostKilledWhileItsCeilingIsMeasured checks that a host that is lost while ceilings are
// measured fails the run before the stage starts, and that its null server ends too.
func TestObjectHostKilledWhileItsCeilingIsMeasured(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	l := f.start(f.cnsbench(), f.args(f.slowReads(), "--ceiling", "--ceiling-for", "5s")...)
	l.child("null-server", "--while-input")
	before := f.ticks()
	l.until("the workers read as fast as they can", func() bool { return f.ticks() > before+20 })
	f.workers[1].kill()
	r := l.wait().wants(t, 2)
	for _, says := range []string{"while its ceiling was measured", "incomplete: stage main: host h1 was lost",
		"nothing of the stage was begun"} {
		if !strings.Contains(r.said(), says) {
			t.Errorf("%q is missing in\n%v", says, r)
		}
	}
	if b := f.open(); b.Run.State != bundle.Failed {
		t.Errorf("the bundle is %s", b.Run.State)
	}
	f.noneOf("object", "null-server", "--while-input")
}

// TestObjectHostKilled checks that a run fails if a host is killed, that the other hosts finish and
// clean up, and that the bundle is flagged incomplete.
func TestObjectHostKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	l := f.start(f.cnsbench(), f.args(f.workload(5))...)
	l.reaches("stage main")
	l.until("a second of host h1 was recorded", func() bool {
		series, _ := os.ReadFile(f.in("bundle", "series", "series.jsonl"))
		return strings.Contains(string(series), `"instance":"main-1"`)
	})
	f.workers[1].kill()
	r := l.wait().wants(t, 2)
	for _, says := range []string{"stage main: host h1 was lost", "2 of 6 workers", "stage main: host h1 (",
		"incomplete: stage main"} {
		if !strings.Contains(r.said(), says) {
			t.Errorf("%q is missing in\n%v", says, r)
		}
	}
	if f.left() != 0 {
		t.Errorf("%d containers are left\n%v", f.left(), r)
	}
	b := f.open()
	if b.Run.State != bundle.Failed || !slices.ContainsFunc(b.Run.Validity,
		func(f bundle.Flag) bool { return f.Name == "incomplete" && f.Severity == "invalid" }) {
		t.Errorf("the bundle is %s, %+v", b.Run.State, b.Run.Validity)
	}
	for s, err := range b.Scalars() {
		if err != nil {
			t.Fatal(err)
		}
		if lost := s.Instance == "main-1"; s.Metric == "read.ok" &&
			(lost && (s.Value < 50 || s.Value > 350) || !lost && s.Value < 400) {
			t.Errorf("%s did %v operations", s.Instance, s.Value)
		}
	}
}

// TestObjectHostsInterrupted checks that an interrupted run on two hosts cleans up.
func TestObjectHostsInterrupted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	l := f.start(f.cnsbench(), f.args(f.workload(600))...)
	l.reaches("stage main")
	f.busy(l)
	l.signal(os.Interrupt)
	if r := l.wait().wants(t, 130); f.left() != 0 {
		t.Errorf("%d containers are left\n%v", f.left(), r)
	}
}

// TestObjectControllerKilled checks that hosts whose controller is killed stop, do not clean up,
// and accept the next controller. While a controller uses them they reject another one.
func TestObjectControllerKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	file := f.workload(600)
	l := f.start(f.cnsbench(), f.args(file)...)
	l.reaches("stage main")
	second := f.run("object", "run", file, "--hosts", f.hosts, "--token-file", f.in("token"), "--out",
		f.in("second")).wants(t, 2)
	if !strings.Contains(second.stderr, "in use by another controller") {
		t.Errorf("%v", second)
	}
	if _, err := os.Stat(f.in("second")); err == nil {
		t.Error("a run that could not begin left a bundle")
	}
	l.kill()
	for i, w := range f.workers {
		w.until(fmt.Sprintf("worker %d is free", i),
			func() bool { return strings.Contains(w.errs.String(), "disconnected") })
	}
	if f.left() != 4 {
		t.Errorf("%d of 4 containers are left", f.left())
	}
	before := f.reads()
	time.Sleep(500 * time.Millisecond)
	if after := f.reads(); after > before+4<<10 { // the Go runtime reads a few bytes
		t.Errorf("they go on reading: %d bytes, then %d", before, after)
	}
	f.run("object", "run", f.workload(1), "--hosts", f.hosts, "--token-file", f.in("token"), "--out",
		f.in("third")).wants(t, 0)
	for _, w := range f.workers {
		w.signal(syscall.SIGTERM)
		w.wait().wants(t, 0)
	}
}

// reads returns the number of bytes that the workers have read, from /proc/PID/io.
func (f *fleet) reads() (n int64) {
	for _, w := range f.workers {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", w.cmd.Process.Pid))
		if err != nil {
			f.Fatal(err)
		}
		var rchar int64
		if _, err := fmt.Sscanf(string(text), "rchar: %d", &rchar); err != nil {
			f.Fatal(err)
		}
		// No controller sends requests any more, so the workers only read objects.
		n += rchar
	}
	return n
}

// ticks returns the CPU time of all workers, in hundredths of a second.
func (f *fleet) ticks() (n int64) {
	for _, w := range f.workers {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
		if err != nil {
			f.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		for _, at := range []int{11, 12} { // utime and stime
			ticks, err := strconv.ParseInt(fields[at], 10, 64)
			if err != nil {
				f.Fatal(err)
			}
			n += ticks
		}
	}
	return n
}

// TestObjectHostsRefused checks the exit code and message for each invalid host, token or option,
// and that no bundle is created.
func TestObjectHostsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	f.token("other", "another token than theirs")
	file := f.workload(1)
	open := f.write("open", "a token that others may read")
	run := func(args ...string) result {
		return f.run(append([]string{"object", "run", file, "--out", f.bundle()}, args...)...)
	}
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"another token", []string{"--hosts", f.hosts, "--token-file", f.in("other")}, 2, "token mismatch"},
		{"connection refused", []string{"--hosts", "127.0.0.1:1", "--token-file", f.in("token")}, 2,
			"host 127.0.0.1:1: "},
		{"no token", []string{"--hosts", f.hosts}, 1, "--token-file"},
		{"a token for all to see", []string{"--hosts", f.hosts, "--token-file", open}, 1, "chmod 600"},
		{"a token without hosts", []string{"--token-file", f.in("token")}, 1, "--hosts"},
		{"no hosts", []string{"--hosts", "h0", "--token-file", f.in("token")}, 1, "HOST:PORT"},
	}
	for _, tt := range tests {
		if r := run(tt.args...); r.code != tt.code || !strings.Contains(r.stderr, tt.says) {
			t.Errorf("%s: want exit %d and %q\n%v", tt.name, tt.code, tt.says, r)
		}
	}
	if _, err := os.Stat(f.bundle()); err == nil {
		t.Error("a run that could not begin left a bundle")
	}
}

// TestObjectHostsKeepSecrets checks that credentials reach only the hosts. Neither the credentials
// nor the token appear in a bundle, an output or a process list.
func TestObjectHostsKeepSecrets(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	var mu sync.Mutex
	signed := map[bool]int{} // number of requests by whether they were signed with the key
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		signed[strings.Contains(r.Header.Get("Authorization"), "Credential=s3cr3t-access/")]++
		_, _ = w.Write([]byte("hello"))
	}))
	defer server.Close()
	f.token("credentials", "accesskey=s3cr3t-access\nsecretkey=s3cr3t-key\n")
	file := f.write("s.xml", fmt.Sprintf(`<workload name="s"><storage type="s3" config="endpoint=%s;credentials=%s"/><workflow>
<workstage name="main"><work name="main" workers="2" totalOps="20"><operation type="read" config="containers=c(1);objects=u(1,9)"/></work></workstage></workflow></workload>`,
		server.URL, f.in("credentials")))
	l := f.start(f.cnsbench(), f.args(file)...)
	l.reaches("stage main")
	all := ""
	for _, p := range append([]*live{l}, f.workers...) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	all += l.wait().wants(t, 0).String()
	for _, w := range f.workers {
		all += w.out.String() + w.errs.String()
	}
	for _, secret := range []string{"s3cr3t", "a token of this test's own"} {
		f.nowhere(secret)
		if i := strings.Index(all, secret); i >= 0 {
			t.Errorf("%q came out: …%s…", secret, all[max(0, i-60):min(len(all), i+60)])
		}
	}
	// With --host-credentials the hosts use the credentials file that the workload names. Without
	// this file they have none.
	own := f.write("own.xml", strings.Replace(f.read(file), ";credentials="+f.in("credentials"), "", 1))
	for _, file := range []string{file, own} {
		if err := os.RemoveAll(f.bundle()); err != nil {
			t.Fatal(err)
		}
		f.run(f.args(file, "--host-credentials")...).wants(t, 0)
	}
	if signed[true] != 40 || signed[false] != 20 {
		t.Errorf("%d requests were signed, and %d not", signed[true], signed[false])
	}
}

func (f *fleet) read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}
