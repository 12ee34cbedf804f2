package parser

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const warpHeader = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\t" +
	"duration_ns"

// warpSample is built to the format of warp: 200 reads of 1000 bytes, one each 10 ms, whose n-th takes n µs and its
// first byte half of that; ten deletes, one of which failed; a comment at the end, as warp writes it.
func warpSample() string {
	begin := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	text := func(t time.Time) string { return t.Format(time.RFC3339Nano) }
	lines := []string{warpHeader + "\tcat"}
	for i := range 200 {
		start, took := begin.Add(time.Duration(i)*10*time.Millisecond), time.Duration(i+1)*time.Microsecond
		lines = append(lines, fmt.Sprintf("%d\t%d\tGET\tabcd\t1\t1000\thttp://a:9000\tx/%d.rnd\t\t%s\t%s\t%s\t%d\t0", i,
			i%4, i, text(start), text(start.Add(took/2)), text(start.Add(took)), took.Nanoseconds()))
	}
	for i := range 10 {
		start, failure := begin.Add(time.Duration(i)*time.Second), ""
		if i == 4 {
			failure = "\"503 \"\"Slow\tDown\"\"\""
		}
		lines = append(lines, fmt.Sprintf("%d\t0\tDELETE\tabcd\t100\t0\thttp://a:9000\t\t%s\t%s\t\t%s\t1000000000\t0", 200+i,
			failure, text(start), text(start.Add(time.Second))))
	}
	return strings.Join(append(lines, "# warp get --full", ""), "\n")
}

// TestWarp recovers the figures that were put into a file, compressed and not.
func TestWarp(t *testing.T) {
	t.Parallel()
	for _, text := range []string{warpSample()} {
		list, err := readWarp(text)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range list.Figures {
			got[f.Name] = fmt.Sprintf("%.6g %s", f.Value, f.Unit)
		}
		window := 1.9902 // from the first start to the last end
		want := map[string]string{
			"GET throughput": fmt.Sprintf("%.6g op/s", 200/window), "GET bandwidth": fmt.Sprintf("%.6g B/s", 200e3/window),
			"GET latency p50": "100000 ns", "GET latency p90": "180000 ns", "GET latency p99": "198000 ns",
			"GET first byte p50": "50000 ns", "GET first byte p90": "90000 ns", "GET first byte p99": "99000 ns",
			"GET failed": "0 %", "DELETE throughput": "0.9 op/s", "DELETE latency p50": "1e+09 ns", "DELETE failed": "10 %"}
		for name, w := range want {
			if got[name] != w {
				t.Errorf("%s is %q, want %q", name, got[name], w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v", got)
		}
	}
}

// TestWarpErrors names what is wrong with a file, and its line.
func TestWarpErrors(t *testing.T) {
	t.Parallel()
	row := func(op, size, start, first, end string) string {
		return warpHeader + "\n0\t1\t" + op + "\tc\t1\t" + size + "\te\tf\t\t" + start + "\t" + first + "\t" + end + "\t5\n"
	}
	const at, later = "2026-11-24T10:00:00Z", "2026-11-24T10:00:01Z"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "the file is empty"},
		{"analysis", "start_time\tops\n1\t2\n", "no column op: want the operations that warp writes with --full"},
		{"commas", strings.ReplaceAll(warpHeader, "\t", ","), "no column op"},
		{"cells", warpHeader + "\n1\t2\n", "wrong number of fields"},
		{"type", row("", "1", at, "", later), "line 2: no type of operation"},
		{"bytes", row("GET", "-1", at, "", later), `line 2: invalid bytes "-1"`},
		{"fraction", row("GET", "1.5", at, "", later), `line 2: invalid bytes "1.5"`},
		{"time", row("GET", "1", "yesterday", "", later), `line 2: invalid start "yesterday": want a time such as`},
		{"backwards", row("GET", "1", later, "", at), "line 2: the end " + at + " is before the start " + later},
		{"first byte", row("GET", "1", later, at, later), "line 2: the first byte " + at + " is before the start"},
		{"aggregate", `{"v":2,"commandline":"warp get","total":{}}`, "this is warp's aggregate"},
	} {
		if list, err := readWarp(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v, want %q", tt.name, list, err, tt.want)
		}
	}
}

// FuzzWarp: every file has finite figures or an error.
func FuzzWarp(f *testing.F) {
	f.Add(warpSample()[:2000])
	f.Fuzz(func(t *testing.T, text string) {
		list, err := readWarp(text)
		if err != nil {
			return
		}
		for _, x := range list.Figures {
			if !(x.Value >= 0) {
				t.Errorf("%+v, %v", x, err)
			}
		}
	})
}
