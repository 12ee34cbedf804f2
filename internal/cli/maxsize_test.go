package cli

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMaxSize checks of each command that reads compressed files of others that it refuses one that yields too much,
// that the error names the flag, and that the flag lifts the limit.
func TestMaxSize(t *testing.T) {
	dir := t.TempDir()
	bomb := func(begin, row string) string {
		file, err := os.CreateTemp(dir, "*.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		z := gzip.NewWriter(file)
		if _, err := z.Write([]byte(begin)); err != nil {
			t.Fatal(err)
		}
		mebibyte := []byte(strings.Repeat(row, 1<<20/len(row)))
		for range 65 {
			if _, err := z.Write(mebibyte); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return file.Name()
	}
	blank, comment := strings.Repeat(" ", 4000)+"\n", "#"+strings.Repeat("-", 1<<12)+"\n"
	trace := bomb("# cnsbench trace 1\ntime,op,kind,object\n", comment)
	iolog := bomb("fio version 2 iolog\n", blank)
	table := bomb("provider,value\na,1\na,2\n", "a,0"+strings.Repeat("0", 1<<12)+"\n")
	if err := os.WriteFile(filepath.Join(dir, "key"), make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, tt := range [][]string{
		{"import", "--out", out, table},
		{"import", "csv", "--out", out, "--factor", "provider", "--value", "value", table},
		{"trace", "stats", trace},
		{"trace", "profile", trace},
		{"trace", "anonymize", "--key-file", filepath.Join(dir, "key"), trace},
		{"trace", "record", "--from-audit", bomb("", "{}"+blank)},
		{"workloads", "profile", iolog},
		{"iotrace", "--trace", iolog},
	} {
		t.Run(strings.Join(tt[:2], " "), func(t *testing.T) {
			const limit = "yields more than 64 MiB and 100 times its size: if that is right, give --max-size SIZE"
			if code, _, errs := call(tt...); code != exitUsage || !strings.Contains(errs, limit) {
				t.Errorf("exit %d, %s", code, errs)
			}
			_, _, errs := call(append(tt, "--max-size", "66Mi")...)
			if strings.Contains(errs, "MiB") || strings.Contains(errs, "max-size") {
				t.Errorf("with the flag: %q", errs)
			}
		})
	}
	for _, size := range []string{"much", "0", "-1Gi"} {
		if _, _, errs := call("trace", "stats", trace, "--max-size", size); !strings.Contains(errs, "--max-size") {
			t.Errorf("%s: %s", size, errs)
		}
	}
}
