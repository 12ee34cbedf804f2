package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestExports checks that the bundle of a run is exported in each format, with all its operations, that it is listed and
// listed, and that it is unchanged by that.
func TestExports(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("bench.yaml", atRate+class("null"))
	b.run(b.runArgs(file)...).wants(t, 0)
	var timeline struct {
		TraceEvents []struct{ Ph, Cat string }
	}
	decode(t, b.run("export", "--format", "perfetto", b.bundle()).wants(t, 0).stdout, &timeline)
	ops := 0
	for _, e := range timeline.TraceEvents {
		if e.Ph == "B" && e.Cat == "op" {
			ops++
		}
	}
	if ops != 5 {
		t.Errorf("%d operations on the timeline, want 5", ops)
	}
	if lines := strings.Count(b.run("export", "--format", "csv", b.bundle()).wants(t, 0).stdout, "\n"); lines != 6 {
		t.Errorf("CSV of %d lines, want a header and 5", lines)
	}
	rows := bufio.NewScanner(strings.NewReader(b.run("export", "--format", "json", b.bundle()).wants(t, 0).stdout))
	n := 0
	for ; rows.Scan(); n++ {
		var row struct {
			Outcome string
			Ready   *int64 `json:"at_ready_ns"`
		}
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil || row.Outcome != "ok" || row.Ready == nil {
			t.Errorf("row %s: %v", rows.Bytes(), err)
		}
	}
	if n != 5 {
		t.Errorf("%d rows, want 5", n)
	}
	traces := b.run("export", "--format", "otlp", b.bundle()).wants(t, 0).stdout
	if roots := strings.Count(traces, `"cnsbench.op.id"`); roots != 5 {
		t.Errorf("%d traces, want 5", roots)
	}
	b.run("export", "--format", "parquet", b.bundle(), "--out", b.in("ops.parquet")).wants(t, 0)
	if text, err := os.ReadFile(b.in("ops.parquet")); err != nil || !strings.HasPrefix(string(text), "PAR1") {
		t.Errorf("no Parquet file: %v", err)
	}
	if out := b.run("list", b.dir).wants(t, 0).stdout; !strings.Contains(out, b.bundle()+" ") ||
		!strings.Contains(out, " complete ") {
		t.Errorf("list prints\n%s", out)
	}
	b.run("show", "--verify", b.bundle()).wants(t, 0)
	b.clean()
}
