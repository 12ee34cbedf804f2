package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/dist"
	"github.com/cnsbench/cnsbench/internal/object/capacity"
	"github.com/cnsbench/cnsbench/internal/object/nullserver"
	"github.com/cnsbench/cnsbench/internal/registry"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// asProgram makes the test binary run as cnsbench, for commands that start this program.
const asProgram = "CNSBENCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	code := m.Run()
	forgetRuns()
	os.Exit(code)
}

// forgetRuns removes the registered runs of these tests, some of which leave containers in stores of theirs.
func forgetRuns() {
	dir, err := registry.Dir()
	if err != nil {
		return
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "run.json"))
	for _, file := range files {
		var e registry.Entry
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &e) == nil &&
			strings.HasPrefix(e.Bundle, filepath.Join(os.TempDir(), "Test")) {
			_ = os.RemoveAll(filepath.Dir(file))
		}
	}
}

// nullServer runs a null server in this process, with the given delay of GET requests.
func nullServer(t *testing.T, o nullserver.Options, delay string) string {
	t.Helper()
	if delay != "" {
		d, err := dist.Parse(delay)
		if err != nil {
			t.Fatal(err)
		}
		o.Delays = map[string]dist.Dist{"GET": d}
	}
	o.Sleep = run.PreciseSleep
	return clienttest.Loopback(t, o.Serve)
}

// undisturbed tries a test that measures in real time up to three times, because other load on the machine can disturb
// it. After three failures it skips the test if the machine is overloaded.
func undisturbed(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = try(); err == nil {
			return
		}
		t.Logf("disturbed? %v", err)
	}
	if text, _ := os.ReadFile("/proc/loadavg"); len(text) > 0 {
		if load, _ := strconv.ParseFloat(strings.Fields(string(text))[0], 64); load > 4*float64(runtime.NumCPU()) {
			t.Skipf("the machine is overrun, its load is %.0f: %v", load, err)
		}
	}
	t.Error(err)
}

// readsOf returns a workload with one stage of reads from a server.
func readsOf(server, work string) string {
	return `<workload name="reads"><storage type="s3" config="endpoint=` + server + `;accesskey=a;secretkey=b"/><workflow><workstage name="main">
<work name="main" ` + work + `><operation type="read" config="containers=c(1);objects=u(1,1000)"/></work></workstage></workflow></workload>`
}

// TestFindMax checks that the search finds the capacity of a server that processes four requests at a time. The
// reference is the service time that the server recorded.
func TestFindMax(t *testing.T) {
	undisturbed(t, func() error {
		truth := &nullserver.Truth{}
		server := nullServer(t, nullserver.Options{Size: 100, Concurrency: 4, Truth: truth}, "10ms")
		dir := filepath.Join(t.TempDir(), "bundle")
		code, out, errs := object(t, readsOf(server, `workers="64" runtime="1" rampup="200ms" rate="constant(150)"`),
			"object", "run", "--find-max", "p90(read) < 40ms",
			"--find-resolution", "0.1", "--window", "500ms", "--out", dir)
		var m capacity.Maximum
		if err := errors.Join(readRaw(dir, "find-max", &m),
			errIf(code != exitOK, "exit %d\n%s%s", code, out, errs)); err != nil {
			return err
		}
		served := truth.Of("GET")
		capacity := 4 / ((served.Whole.Mean() - served.Queued.Mean()) / 1e9)
		if !strings.Contains(out, "main: p90(read) < 40ms holds up to") || !strings.Contains(out, "  find01 ") ||
			strings.Contains(out, "lost-operations") {
			t.Errorf("the table does not say so:\n%s", out)
		}
		again := filepath.Join(t.TempDir(), "again")
		copyRun(t, dir, again, nil)
		code, text, errs := cnsbench(t, "", "compare", "a="+dir, "b="+again, "--output", "json")
		rate := fmt.Sprintf(`"min": %v`, *m.PerSecond)
		if code != exitOK || !strings.Contains(text, `"metric": "findMax(main)"`) || !strings.Contains(text, rate) {
			t.Errorf("exit %d %s: the comparison has no findMax(main) with %s", code, errs, rate)
		}
		if *m.PerSecond > 1.15*capacity {
			t.Errorf("%+v; the server can do %.4g a second", &m, capacity)
		}
		// A step that other processes disturbed does not hold at a rate that the server can do.
		return errIf(*m.PerSecond < 0.5*capacity, "%+v; the server can do %.4g a second", &m, capacity)
	})
}

// readRaw decodes the result of a search from its bundle.
func readRaw(dir, name string, v any) error {
	text, err := os.ReadFile(filepath.Join(dir, "raw", "cnsbench", name, name+".json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

func errIf(wrong bool, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func TestFindMaxExits(t *testing.T) {
	server := nullServer(t, nullserver.Options{Size: 100}, "5ms")
	reads := readsOf(server, `workers="8" runtime="1" rampup="100ms"`)
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"never", []string{"--find-max", "p50(read) < 1ms", "--find-from", "40", "--find-least", "40", "--window",
			"300ms"}, exitSLO, "never holds"},
		{"always", []string{"--find-max", "p50(read) < 1s", "--find-from", "40", "--find-most", "50", "--window",
			"300ms"}, exitOK, "holds at all rates of the search"},
		{"no such operation", []string{"--find-max", "p99(write) < 20ms"}, exitUsage,
			`column 5: operation "write" not found`},
		{"no such stage", []string{"--find-max", "p99(read) < 20ms", "--stage", "x"}, exitUsage, `unknown stage "x"`},
		{"both", []string{"--find-max", "p99(read) < 20ms", "--scale-workers", "1,2"}, exitUsage, "exclude each other"},
		{"one number of workers", []string{"--scale-workers", "4"}, exitUsage, "want at least two"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := object(t, reads, append([]string{"object", "run", "--out",
				filepath.Join(t.TempDir(), "bundle")}, tt.args...)...)
			if code != tt.code || !strings.Contains(out+errs, tt.says) {
				t.Errorf("exit %d, want %d and %q in\n%s%s", code, tt.code, tt.says, out, errs)
			}
		})
	}
}

// TestBurstRate checks the latencies of bursts of 20 requests on a server that processes four at a time: there are five
// rounds, and the last one waits 40 ms. No latency is less than that, or than the server's own record has it.
func TestBurstRate(t *testing.T) {
	truth := &nullserver.Truth{}
	server := nullServer(t, nullserver.Options{Size: 100, Concurrency: 4, Truth: truth}, "10ms")
	dir := filepath.Join(t.TempDir(), "bundle")
	code, out, errs := object(t, readsOf(server, `workers="32" runtime="3" rate="burst(20,500ms)"`), "object", "run",
		"--out", dir)
	b, err := bundle.Open(dir)
	if err = errors.Join(err, errIf(code != exitOK, "exit %d\n%s%s", code, out, errs)); err != nil {
		t.Fatal(err)
	}
	served := truth.Of("GET").Whole
	if served.N() != 100 { // due at 0.5, 1, 1.5, 2 and 2.5 s; the run ends at 3 s
		t.Errorf("%d requests came, want 100", served.N())
	}
	reads := int64(0)
	for h, err := range b.Histograms() {
		if err != nil {
			t.Fatal(err)
		}
		if h.Metric != "read" || !h.Total {
			continue
		}
		reads = h.Hist.N()
		for q, want := range map[float64]float64{0.1: 10e6, 0.5: 30e6, 0.99: 50e6} {
			got, _ := h.Hist.Quantile(q)
			told, _ := served.Quantile(q)
			// A busy machine takes longer, but not as long as from one burst to the next.
			if got < told || float64(got) < want || got > told+4e8 {
				t.Errorf("quantile %g: %d ns, the server took %d, and was to take %g", q, got, told, want)
			}
		}
	}
	if reads != 100 {
		t.Errorf("%d reads, want 100\n%s", reads, out)
	}
}

// TestFindMaxDryRun checks that a dry run of a search describes one step, and the cost of a step at the highest rate.
func TestFindMaxDryRun(t *testing.T) {
	code, out, errs := object(t, readsOf("http://127.0.0.1:1", `workers="8" runtime="1"`), "object", "run",
		"--dry-run", "--find-max", "p50(read) < 20ms",
		"--find-from", "200", "--find-most", "1000", "--window", "8s", "--warm-up", "2s")
	table := regexp.MustCompile(`(?m)^ +main +main +2000 `)
	const says = "stage main is counted once, at 200 a second: the search repeats it, at rates that are not known " +
		"beforehand; a step at 1000 a second, the highest, sends 10000 requests in 10s, at a cost of 0.0040"
	if code != exitOK || !table.MatchString(out) || !strings.Contains(out, says) ||
		!strings.Contains(out, "nothing was sent") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestCeiling checks that the ceiling of a client, measured against a null server in a separate process, is far above
// the rate of a slow server.
func TestCeiling(t *testing.T) {
	t.Setenv(asProgram, "1")
	undisturbed(t, func() error {
		server := nullServer(t, nullserver.Options{Size: 100}, "20ms")
		code, out, errs := object(t, readsOf(server, `workers="2" runtime="2"`), "object", "run", "--ceiling",
			"--ceiling-for", "500ms", "--out", filepath.Join(t.TempDir(), "bundle"))
		text := strings.Join(strings.Fields(out), " ") // where its lines end depends on the figures
		found := regexp.MustCompile(`at (\d+) % of this client's own ceiling of ([0-9]+) operations a second`).
			FindStringSubmatch(text)
		if code != exitOK || found == nil {
			return fmt.Errorf("exit %d, and no ceiling in\n%s%s", code, out, errs)
		}
		share, _ := strconv.Atoi(found[1])
		ceiling, _ := strconv.ParseFloat(found[2], 64)
		return errIf(share > 50 || ceiling < 200, "100 operations a second are %d %% of %.4g", share, ceiling)
	})
}

// TestReadScalingSuite checks the suites modeled on COSBench's paper, at a small scale: a server that processes two
// requests at a time has its knee at two workers.
func TestReadScalingSuite(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	t.Setenv("SWIFT_USER", "account:user")
	t.Setenv("OS_PASSWORD", "b")
	for _, suite := range []string{"read-scaling", "read-scaling-swift"} {
		t.Run(suite, func(t *testing.T) {
			undisturbed(t, func() error {
				address := nullServer(t, nullserver.Options{Size: 64000, Concurrency: 2}, "8ms")
				t.Setenv("S3_ENDPOINT", address)
				t.Setenv("SWIFT_AUTH_URL", address+"/auth/v1.0")
				return scales(t, suite)
			})
		})
	}
}

func scales(t *testing.T, suite string) error {
	dir := filepath.Join(t.TempDir(), "bundle")
	var out, errs strings.Builder
	code := Main([]string{"object", "run", "suite:" + suite, "--scale-workers", "1,2,4,8", "--repetitions", "4",
		"--window", "400ms", "--warm-up", "50ms", "--out", dir},
		strings.NewReader(""), &out, &errs)
	var s capacity.Scaling
	if err := errors.Join(readRaw(dir, "scale-workers", &s),
		errIf(code != exitOK, "exit %d\n%s%s", code, &out, &errs)); err != nil {
		return err
	}
	k := s.Knee
	if k == nil || len(k.Levels) != 4 || len(k.Levels[0].PerSecond) != 4 {
		return fmt.Errorf("%v\n%s", k, &out)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	return errIf(k.Workers == nil || *k.Workers != 2 || !strings.Contains(text, "the knee is at 2 workers"),
		"%v, want the knee at 2\n%s", k, &out)
}

// TestReproduceObjectRun checks that the command in the report has the flags that affect the run, and the seed, even if
// it was chosen at random.
func TestReproduceObjectRun(t *testing.T) {
	work := `<work name="main" workers="2" totalOps="20"><operation type="read" config="containers=u(1,2);objects=u(1,5)"/></work>`
	for _, tt := range []struct{ args, want []string }{
		{[]string{"--scale-workers", "1,2", "--repetitions", "2", "--window", "500ms", "--seed", "7",
			"--strict=false", "--host-credentials=false"},
			[]string{"--seed", "7", "--scale-workers", "1,2", "--repetitions", "2", "--window", "500ms"}},
		{[]string{"--find-max", "p50(read) < 1h", "--find-most", "200", "--window", "200ms", "--warm-up", "10ms",
			"--seed", "8"},
			[]string{"--seed", "8", "--find-max", "'p50(read) < 1h'", "--find-most", "200", "--window", "200ms",
				"--warm-up", "10ms"}},
		{nil, []string{"--seed"}},
	} {
		dir := filepath.Join(t.TempDir(), "bundle")
		if code, out, errs := object(t, objectXML(t.TempDir(), work),
			append([]string{"object", "run", "--out", dir}, tt.args...)...); code != exitOK {
			t.Fatalf("exit %d\n%s%s", code, out, errs)
		}
		page := filepath.Join(t.TempDir(), "page.html")
		if code, out, errs := command("report", dir, "--out", page); code != exitOK {
			t.Fatalf("exit %d\n%s%s", code, out, errs)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if want := "workload.xml " + strings.Join(tt.want, " "); !strings.Contains(html.UnescapeString(string(text)),
			want) {
			t.Errorf("the report has no %q: %s", want, regexp.MustCompile("cnsbench object run.*").Find(text))
		}
	}
}
