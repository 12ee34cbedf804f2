package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestDamagedBundle checks that every command has the same exit code, whichever file of a bundle is damaged.
func TestDamagedBundle(t *testing.T) {
	for _, file := range []string{"run.json", "events/ops.parquet"} {
		b, _ := analysistest.Demo(t)
		good, _ := analysistest.Demo(t)
		if err := os.Truncate(filepath.Join(b.Dir, file), 50); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"show", "show --events", "show --op 3", "report -o -", "compare " + good.Dir,
			"export --format csv", "reproduce", "verify"} {
			code, _, errs := call(append(strings.Fields(command), b.Dir)...)
			if code != exitFailed {
				t.Errorf("%s, %s: exit %d, %s", file, command, code, errs)
			}
		}
	}
}
