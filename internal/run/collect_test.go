package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// TestParserPanics: a parser that panics has an error and no result; the run goes on.
func TestParserPanics(t *testing.T) {
	x := reading{read: func(parser.Input) (parser.Result, error) { panic("a bug") }}
	x.parse()
	if x.err == nil || !strings.Contains(x.err.Error(), "the parser panicked: a bug") {
		t.Errorf("%v", x.err)
	}
}

func TestUnread(t *testing.T) {
	_, err := fs.ReadDir(os.DirFS(filepath.Join(t.TempDir(), "none")), ".")
	if got := unread(fmt.Errorf("fio: %w", err)); got != "it wrote no output file" {
		t.Error(got)
	}
	_, err = fs.ReadFile(os.DirFS(t.TempDir()), "fio.json")
	if got := unread(err); got != "open fio.json: no such file or directory" {
		t.Error(got)
	}
}
