package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

func entry(name string) op.LedgerEntry {
	return op.LedgerEntry{Kind: "volume", Name: name, Data: map[string]string{"handle": name}}
}

func TestLedger(t *testing.T) {
	dir := bounded.Dir(t.TempDir())
	path := dir.Path(ledgerFile)
	l, err := OpenLedgerIn(dir)
	must(t, err)
	for _, n := range []string{"a", "b", "c"} {
		must(t, l.Add(entry(n)))
	}
	must(t, l.Done("volume", "b"))
	must(t, l.Done("mount", "a")) // an unknown entry of another kind has no effect
	changed := entry("a")
	changed.Data["handle"] = "new"
	must(t, l.Add(changed))
	want := []op.LedgerEntry{changed, entry("c")}
	equal(t, "open", l.Open(), want)
	must(t, l.Close())
	must(t, l.Close())
	if err := l.Add(entry("d")); err == nil {
		t.Error("a closed ledger took an entry")
	}

	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(text, `{"add":{"kind":"vol`...), 0o644)) // torn tail
	l, err = OpenLedgerIn(dir)
	must(t, err)
	equal(t, "reopened", l.Open(), want)
	must(t, l.Add(entry("d")))
	must(t, l.Close())
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	s, _, err := readLedger(f)
	must(t, err)
	equal(t, "after the torn line", s.list(), append(want, entry("d")))
}

// TestLedgerNote checks that notes are written without an Add, with the next one, and at the close.
func TestLedgerNote(t *testing.T) {
	dir := bounded.Dir(t.TempDir())
	path := dir.Path(ledgerFile)
	l, err := OpenLedgerIn(dir)
	must(t, err)
	has := func(name string) bool {
		text, err := os.ReadFile(path)
		must(t, err)
		return strings.Contains(string(text), `"name":"`+name+`"`)
	}
	must(t, l.Note(entry("later")))
	equal(t, "open", l.Open(), []op.LedgerEntry{entry("later")})
	for end := time.Now().Add(20 * noteDelay); !has("later"); time.Sleep(noteDelay / 10) {
		if time.Now().After(end) {
			t.Fatal("a note is never written")
		}
	}
	must(t, l.Note(entry("with")))
	must(t, l.Add(entry("added")))
	if !has("with") || !has("added") {
		t.Error("an Add has not written the note before it")
	}
	must(t, l.Note(entry("last")))
	must(t, l.Close())
	if !has("last") {
		t.Error("the close has not written the last note")
	}
}

// TestLedgerConcurrent checks that concurrent Adds share syncs, and that no entry is lost.
func TestLedgerConcurrent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b")
	w, err := Create(dir, Run{Engine: "kubernetes"})
	must(t, err)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("v-%d-%d", i, j)
				if err := w.Ledger().Add(entry(name)); err != nil {
					t.Error(err)
				}
				if j%2 == 0 {
					if err := w.Ledger().Done("volume", name); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	must(t, w.Close(nil))
	l, err := OpenLedger(dir)
	must(t, err)
	defer l.Close()
	if n := len(l.Open()); n != 640 {
		t.Errorf("%d entries, want 640", n)
	}
	if _, err := OpenLedger(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("two cleaners at once: %v", err)
	}
}

// BenchmarkLedgerAdd measures a durable Add with 64 concurrent callers.
func BenchmarkLedgerAdd(b *testing.B) {
	l, err := OpenLedgerIn(bounded.Dir(b.TempDir()))
	must(b, err)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Add(entry("v")); err != nil {
				b.Error(err)
			}
		}
	})
	must(b, l.Close())
}
