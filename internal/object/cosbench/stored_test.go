package cosbench_test

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/filestore"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// TestStoredContents runs a file with compressible and dedupable contents and hashed names, and compresses and
// deduplicates what was stored; reads check every byte.
func TestStoredContents(t *testing.T) {
	const file = `<workload name="w" config="hashprefix=2;compressible=60%;dedupable=50"><storage type="file" config="root=/x"/><workflow>
<workstage name="init"><work type="init" workers="1" config="containers=c(1)"/></workstage>
<workstage name="fill"><work type="prepare" workers="2" config="containers=c(1);objects=r(1,60);sizes=c(256)KiB"/></workstage>
<workstage name="main"><work name="main" workers="2" totalOps="100">
<operation type="read" ratio="60" config="containers=c(1);objects=u(1,60);hashCheck=true"/>
<operation type="read" ratio="20" config="containers=c(1);objects=u(1,60);hashCheck=true;length=12KiB;within=256KiB"/>
<operation type="write" ratio="20" config="containers=c(1);objects=u(61,80);sizes=c(64)KiB;check=readAfterWrite"/>
</work></workstage></workflow></workload>`
	w, problems := cosbench.Parse([]byte(file), cosbench.Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	root, clock := t.TempDir(), op.NewClock()
	r := loadtest.Run(t.Context(), loadgen.Config{Workload: w, Clock: clock, Seed: 1, Grace: 10 * time.Second,
		Open: func(*model.Store) (client.Store, error) {
			return filestore.New(map[string]string{"root": root}, clock)
		}})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, s := range r.Stages {
		for i := range s.Works {
			if bad, _ := s.Works[i].Violated(); bad > 0 {
				t.Errorf("%s: %d violations", s.Name, bad)
			}
			without(t, s.Name, &s.Works[i])
		}
	}
	stored(t, root, 60, 50)
}

// stored compresses and deduplicates the objects below a directory.
func stored(t *testing.T, root string, compressible, dedupable float64) {
	t.Helper()
	name, blocks, kept := regexp.MustCompile(`^[0-9a-f]{2}-myobjects[0-9]+$`), 0, map[[32]byte]bool{}
	var bytesIn, bytesOut, objects int
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(path) == client.Marker {
			return err
		}
		if objects++; !name.MatchString(filepath.Base(path)) {
			t.Errorf("%s has no hash before it", path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z, _ := flate.NewWriter(&packed, flate.BestSpeed)
		_, _ = z.Write(text)
		_ = z.Close()
		bytesIn, bytesOut = bytesIn+len(text), bytesOut+packed.Len()
		for ; len(text) >= 4096; text = text[4096:] {
			blocks++
			kept[sha256.Sum256(text[:4096])] = true
		}
		return nil
	})
	if err != nil || objects < 60 {
		t.Fatalf("%d objects: %v", objects, err)
	}
	if got := 100 * (1 - float64(bytesOut)/float64(bytesIn)); math.Abs(got-compressible) > 3 {
		t.Errorf("%.1f %% compressed, want %g", got, compressible)
	}
	if got := 100 * (1 - float64(len(kept))/float64(blocks)); math.Abs(got-dedupable) > 5 {
		t.Errorf("%.1f %% deduplicated, want %g", got, dedupable)
	}
}
