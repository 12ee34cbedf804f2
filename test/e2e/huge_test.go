package e2e

import (
	"bytes"
	"compress/gzip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// mostMemory is the memory limit in bytes for reading a small file, independent of its uncompressed
// size.
const mostMemory = 256 << 20

// endless returns compressed text of 768 MiB in a few MiB: head, followed by repeated copies of
// piece.
func endless(t *testing.T, head, piece string) string {
	t.Helper()
	var packed, out bytes.Buffer
	pack := func(into *bytes.Buffer, text string) {
		z, _ := gzip.NewWriterLevel(into, gzip.BestSpeed)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	pack(&packed, strings.Repeat(piece, 8<<20/len(piece)))
	pack(&out, head)
	for range 96 {
		out.Write(packed.Bytes())
	}
	return out.String()
}

// TestHugeFiles checks that a small file with a huge field is rejected with its line number and
// within the memory limit.
func TestHugeFiles(t *testing.T) {
	const csv = "# cnsbench trace 1\ntime,op,kind,object\n"
	for _, c := range []struct{ name, head, piece, says string }{
		{"field", csv + "0,create,volume,", "x", "line 3 is longer than 1 MiB"},
		{"quoted field", csv + "0,create,volume,\"", "xxxxxxx\n", "line 3 is longer than 1 MiB"},
		{"column", "# cnsbench trace 1\ntime,", "x", "line 2 is longer than 1 MiB"},
		{"JSON", "{\"cnsbenchTrace\": 1}\n{\"object\": \"", "x", "line 2 is longer than 1 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			file := b.write("trace.csv.gz", endless(t, c.head, c.piece))
			if info, err := os.Stat(file); err != nil || info.Size() > 8<<20 {
				t.Fatalf("the file is not small: %v, %v", info, err)
			}
			command := b.command(t.Context(), b.cnsbench(), "trace", "stats", file)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			if err := command.Run(); err == nil || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("got %v, %q; want %q", err, stderr.String(), c.says)
			}
			usage := command.ProcessState.SysUsage().(*syscall.Rusage)
			most := int64(mostMemory)
			if isRaced() {
				most *= 2 // for what the detector keeps
			}
			if used := usage.Maxrss << 10; used > most {
				t.Errorf("it took %d MiB, want at most %d", used>>20, most>>20)
			}
		})
	}
}

// isRaced says whether the tests and the programs that they start have the race detector.
func isRaced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
