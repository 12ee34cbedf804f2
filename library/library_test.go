package library_test

import (
	"io/fs"
	"testing"

	"github.com/cnsbench/cnsbench/library"
)

// TestScriptsAreEqual: the entries of fio on one file fill it in the same way, and those that replay logs do that in
// the same way. Each is a folder that can be copied, so each has the script.
func TestScriptsAreEqual(t *testing.T) {
	read := func(from fs.FS, file string) string {
		text, err := fs.ReadFile(from, file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, entry := range []string{"fio-jobfile", "fio-mix"} {
		if file := "workloads/" + entry + "/prefill.sh"; read(library.Workloads, file) !=
			read(library.Workloads, "workloads/fio/prefill.sh") {
			t.Errorf("%s differs from that of fio", file)
		}
	}
	if read(library.Workloads, "workloads/fio-iolog/run.sh") != read(library.Profile, "profile/run.sh") {
		t.Error("workloads/fio-iolog/run.sh differs from profile/run.sh")
	}
}
