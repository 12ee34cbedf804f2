package bundle

import (
	"bytes"
	"os"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// A run of hours has many segments, of which only the current one is open.
func TestSyncClosesFullSegments(t *testing.T) {
	fs := newFiles(bounded.Dir(t.TempDir()))
	fs.limit = 100
	record := bytes.Repeat([]byte("x"), 60)
	for range 7 {
		if err := fs.append(eventsDir, record); err != nil {
			t.Fatal(err)
		}
		if err := fs.sync(); err != nil {
			t.Fatal(err)
		}
	}
	if _, current := fs.byName[segmentName(4)]; fs.lru.Len() != 1 || !current {
		t.Errorf("%d files are open after three full segments, want the fourth segment only", fs.lru.Len())
	}
	if err := fs.close(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{120, 120, 120, 60} {
		st, err := os.Stat(fs.root.Path(segmentName(i + 1)))
		if err != nil || st.Size() != want {
			t.Errorf("segment %d: %v (error %v), want %d bytes", i+1, st, err, want)
		}
	}
}
