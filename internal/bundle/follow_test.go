package bundle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// A follower returns each record once, and none of which a part is missing.
func TestFollow(t *testing.T) {
	t.Parallel()
	want := newSample(t)
	w := newWriter(t)
	f := Follow(w.Dir())
	var got News
	next := func() {
		t.Helper()
		n, more, err := f.Next()
		if err != nil || more {
			t.Fatal(more, err)
		}
		got.Ops, got.Samples = append(got.Ops, n.Ops...), append(got.Samples, n.Samples...)
		got.Canary, got.Log = append(got.Canary, n.Canary...), append(got.Log, n.Log...)
		got.Series, got.Starts, got.Ends = append(got.Series, n.Series...), append(got.Starts, n.Starts...),
			append(got.Ends, n.Ends...)
	}
	next()
	want.write(w)
	must(t, w.Flush())
	next()
	log, err := os.OpenFile(filepath.Join(w.Dir(), logFile), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	for _, part := range []string{`{"at":7,"source":"a",`, "\"line\":\"b\"}\n"} {
		_, err := log.WriteString(part)
		must(t, err)
		next()
	}
	must(t, log.Close())
	next()
	equal(t, "ops", got.Ops, want.ops)
	equal(t, "samples", got.Samples, want.samples)
	equal(t, "canary", got.Canary, want.canary)
	equal(t, "series", got.Series, want.series)
	equal(t, "log", got.Log, append(want.log, LogLine{At: 7, Source: "a", Line: "b"}))
	var starts []op.InstanceStart
	var ends []op.InstanceEnd
	for _, i := range want.instances {
		if starts = append(starts, i.Starts...); i.End != nil {
			ends = append(ends, *i.End)
		}
	}
	equal(t, "starts", got.Starts, starts)
	if d := cmp.Diff(ends, got.Ends); d != "" {
		t.Errorf("ends (-want +got):\n%s", d)
	}
}
