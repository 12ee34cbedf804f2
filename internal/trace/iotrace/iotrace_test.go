package iotrace

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// iolog3.log was written by fio 3.33. blkparse.txt was printed by blkparse 1.2.0 of events that a script made in the
// binary format. biosnoop.* have the same requests in the documented formats of BCC's biosnoop.

func recorded(tb testing.TB, name string) *Trace {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	t, err := Parse(f, "")
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// kinds counts the operations of each kind.
func kinds(t *Trace) map[Op]int {
	n := map[Op]int{}
	for _, x := range t.IOs {
		n[x.Op]++
	}
	return n
}

func TestRecorded(t *testing.T) {
	for _, tt := range []struct {
		name, format string
		want         map[Op]int
	}{
		{"iolog3.log", FioIolog, map[Op]int{Read: 232, Write: 123, Sync: 42}},
		{"blkparse.txt", Blkparse, map[Op]int{Read: 113, Write: 37, Sync: 8}},
		{"biosnoop.txt", Biosnoop, map[Op]int{Read: 113, Write: 37}},
		{"biosnoop.csv", Biosnoop, map[Op]int{Read: 113, Write: 37}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := recorded(t, tt.name)
			if d := cmp.Diff(tt.want, kinds(got)); d != "" || got.Format != tt.format {
				t.Errorf("%s (-want +got):\n%s", got.Format, d)
			}
			valid(t, got)
		})
	}
}

// valid checks what every trace keeps.
func valid(t *testing.T, x *Trace) {
	t.Helper()
	if len(x.IOs) == 0 || x.IOs[0].At != 0 {
		t.Fatal("the trace does not begin at 0")
	}
	for i, o := range x.IOs {
		if i > 0 && o.At < x.IOs[i-1].At {
			t.Fatalf("operation %d is out of order", i)
		}
		if o.Op.Transfers() != (o.Size > 0) || o.Offset < 0 {
			t.Fatalf("invalid operation %+v", o)
		}
	}
}

// TestSameRequests: the formats of the block layer agree about the same requests.
func TestSameRequests(t *testing.T) {
	transfers := func(name string) (list []IO) {
		for _, x := range recorded(t, name).IOs {
			if x.Op.Transfers() {
				list = append(list, x)
			}
		}
		return list
	}
	want := transfers("blkparse.txt")
	for name, tolerance := range map[string]int64{"biosnoop.txt": 10e3, "biosnoop.csv": 1500} {
		got := transfers(name)
		if len(got) != len(want) {
			t.Fatalf("%s: %d requests, want %d", name, len(got), len(want))
		}
		for i, x := range got {
			w := want[i]
			if x.Op != w.Op || x.Offset != w.Offset || x.Size != w.Size || abs(x.Latency-w.Latency) > tolerance ||
				abs(x.At-w.At) > 2*tolerance {
				t.Fatalf("%s: request %d is %+v, want %+v", name, i, x, w)
			}
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, text, device string
		want               []IO
	}{
		{"version 2", "fio version 2 iolog\nf add\nf open\nf write 4096 512\nf wait 200 0\nf sync 0 0\nf wait 50 0\n" +
			"f read 8192 1024\nf close\n", "", []IO{{0, -1, Write, 0, 512}, {200e3, -1, Sync, 0, 0},
			{250e3, -1, Read, 4096, 1024}}},
		{"version 2 without times", "fio version 2 iolog\nf read 0 512\nf write 512 512\n", "", []IO{{0, -1, Read, 0, 512},
			{0, -1, Write, 512, 512}}},
		{"two files", "fio version 3 iolog\n10 a write 4096 4096\n20 b write 8192 512\n30 b trim 0 4096\n40 a read 0 512\n",
			"", []IO{{0, -1, Write, 4096, 4096}, {10e3, -1, Write, 8192, 512}, {30e3, -1, Read, 0, 512}}},
		{"issued only", "8,0 0 1 0.5 1 D WS 8 + 8 [a b]\n8,0 0 2 0.6 1 C WS 8 + 8 [0]\n8,0 0 3 0.7 1 Q R 8 + 1 [x]\n", "",
			[]IO{{0, 1e8, Write, 0, 4096}}},
		{"one of two devices", "8,0 0 1 0.5 1 Q R 8 + 8 [a]\n8,16 0 1 0.6 1 Q R 16 + 8 [a]\n", "8,16",
			[]IO{{0, -1, Read, 0, 4096}}},
		{"a flush", "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.0 a 1 sda F -1 0 1.5\n0.1 a 1 sda R 9 512 0.5\n", "",
			[]IO{{0, 15e5, Sync, 0, 0}, {101e6, 5e5, Read, 512, 512}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(strings.NewReader(tt.text), tt.device)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got.IOs); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const v3, bio = "fio version 3 iolog\n", "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n"
	for _, tt := range []struct{ name, text, device, want string }{
		{"empty", "", "", "the trace is empty"},
		{"blank", "\n \n", "", "the trace is empty"},
		{"other text", "\nhello\n", "", "line 2: unknown format"},
		{"binary", "\x00\x01\x02\xff", "", "line 1: binary data"},
		{"blktrace's file", "\x07tae\x00\x00", "", "blkparse makes it"},
		{"gzip", "\x1f\x8b\x08\x00", "", "gzip: unexpected EOF"},
		{"binary later", v3 + "1 f add\n\xff\xfe\n", "", "line 3: binary data"},
		{"long line", v3 + strings.Repeat("x", 5000), "", "line 2: the line is longer"},
		{"version 1", "fio version 1 iolog\n", "", `unsupported header "fio version 1 iolog"`},
		{"no operations", v3 + "1 f add\n", "", "no reads, writes or syncs"},
		{"trims only", v3 + "1 f trim 0 4096\n", "", "no reads, writes or syncs"},
		{"unsorted iolog", v3 + "5 f read 0 512\n4 f read 0 512\n", "", "line 3: time 4 us is before"},
		{"wait in version 3", v3 + "5 f wait 5 0\n", "", "line 2: action wait is not allowed"},
		{"time", v3 + "x f read 0 512\n", "", `line 2: invalid time "x"`},
		{"fields", v3 + "5 f read 0\n", "", "line 2: invalid number of fields"},
		{"action", v3 + "5 f frob 0 512\n", "", `line 2: unknown action "frob"`},
		{"negative", v3 + "5 f read -1 512\n", "", "line 2: invalid offset -1"},
		{"no size", v3 + "5 f read 0 0\n", "", "line 2: invalid size 0"},
		{"huge", v3 + "5 f read 0 99999999999\n", "", "line 2: invalid size"},
		{"far", v3 + "5 f read 9223372036854775807 512\n", "", "line 2: invalid offset"},
		{"device of an iolog", v3 + "5 f read 0 512\n", "sda", "has no devices"},
		{"two devices", "8,0 0 1 0.5 1 Q R 8 + 8 [a]\n8,1 0 1 0.6 1 Q R 8 + 8 [a]\n", "",
			"line 2: the trace has the devices"},
		{"no such device", "8,0 0 1 0.5 1 Q R 8 + 8 [a]\n", "8,1", "no reads, writes or syncs of device 8,1"},
		{"unsorted blkparse", "8,0 0 1 9.5 1 Q R 8 + 8 [a]\n8,0 0 1 0.6 1 Q R 8 + 8 [a]\n", "",
			"line 2: the time is 8.9 s before"},
		{"other line", "8,0 0 1 9.5 1 Q R 8 + 8 [a]\nfoo\n", "", `line 2: invalid line "foo"`},
		{"columns", "TIME(s) COMM PID DISK T SECTOR BYTES\n", "", "line 1: column LAT(ms) is there 0 times"},
		{"milliseconds of bpftrace", "TIME(ms) SECTOR\n", "", "column TIME(s) is there 0 times"},
		{"few columns", bio + "0.0 a 1 sda R\n", "", "line 2: invalid number of columns"},
		{"unsorted biosnoop", bio + "9.0 a 1 sda R 8 512 0.1\n1.0 a 1 sda R 8 512 0.1\n", "",
			"line 3: the time is 8.0 s before"},
		{"latency", bio + "9.0 a 1 sda R 8 512 x\n", "", `line 2: invalid LAT(ms) "x"`},
		{"sector", bio + "9.0 a 1 sda R ? 512 1\n", "", `line 2: invalid SECTOR "?"`},
		{"kind", bio + "9.0 a 1 sda X 8 512 1\n", "", `line 2: unknown kind T "X"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(tt.text), tt.device)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestWriteIolog: what is written is read again, in lanes by turns.
func TestWriteIolog(t *testing.T) {
	want := recorded(t, "iolog3.log")
	var lanes [2]bytes.Buffer
	if err := WriteIolog(want.IOs, "f", []io.Writer{&lanes[0], &lanes[1]}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range lanes {
		if !strings.HasPrefix(lanes[i].String(), "fio version 3 iolog\n0 f add\n1 f open\n") {
			t.Fatalf("lane %d begins with %.80q", i, lanes[i].String())
		}
		n += strings.Count(lanes[i].String(), "\n") - 3
	}
	if n != len(want.IOs) {
		t.Errorf("%d operations in lanes, want %d", n, len(want.IOs))
	}
	var one bytes.Buffer
	if err := WriteIolog(want.IOs, "f", []io.Writer{&one}); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(&one, "")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.IOs, got.IOs); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestInFlight(t *testing.T) {
	x := &Trace{IOs: []IO{{0, 100, Read, 0, 1}, {10, 100, Read, 0, 1}, {20, 5, Read, 0, 1}, {200, 10, Read, 0, 1}}}
	if n := x.InFlight(); n != 3 {
		t.Errorf("%d in flight, want 3", n)
	}
	if n := recorded(t, "iolog3.log").InFlight(); n != 0 {
		t.Errorf("%d in flight in a trace without latencies", n)
	}
}

// fuzz checks that any text gives a valid trace or an error, for texts that begin like a recorded one.
func fuzz(f *testing.F, names ...string) {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		f.Add(bytes.Join(slices.Clip(lines[:min(20, len(lines))]), nil), "")
	}
	f.Fuzz(func(t *testing.T, text []byte, device string) {
		x, err := Parse(bytes.NewReader(text), device)
		if err != nil {
			return
		}
		valid(t, x)
	})
}

func FuzzIolog(f *testing.F)    { fuzz(f, "iolog3.log") }
func FuzzBlkparse(f *testing.F) { fuzz(f, "blkparse.txt") }
func FuzzBiosnoop(f *testing.F) { fuzz(f, "biosnoop.txt", "biosnoop.csv") }
