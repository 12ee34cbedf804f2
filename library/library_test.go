package library_test

import (
	"io/fs"
	"testing"

	"github.com/cnsbench/cnsbench/library"
)

// TestPrefillsAreEqual: the entries of fio on one file fill it in the same way. Each is a folder that can be copied, so
// each has the script.
func TestPrefillsAreEqual(t *testing.T) {
	read := func(entry string) string {
		text, err := fs.ReadFile(library.Workloads, "workloads/"+entry+"/prefill.sh")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, entry := range []string{"fio-jobfile", "fio-mix"} {
		if read(entry) != read("fio") {
			t.Errorf("workloads/%s/prefill.sh differs from that of fio", entry)
		}
	}
}
