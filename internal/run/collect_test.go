package run

import (
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
