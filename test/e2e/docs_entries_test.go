//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// TestEntryDocuments runs the blocks of the documents that need an application of the library.
func TestEntryDocuments(t *testing.T) {
	n := 0
	for _, k := range blocks(t) {
		if !slices.Contains(rotation.Applications, k.needs) {
			continue
		}
		n++
		t.Run(filepath.Base(k.file), func(t *testing.T) {
			rotation.Need(t, k.needs)
			k.run(t)
		})
	}
	if n == 0 {
		t.Error("no document has a block that needs an application")
	}
}

// TestLongDocuments runs the blocks of the documents that take too long for make test.
func TestLongDocuments(t *testing.T) {
	needRoot(t)
	var files []string
	for _, k := range blocks(t) {
		if k.needs == "long" {
			files = append(files, k.file)
		}
	}
	for _, k := range blocks(t) {
		if k.needs != "long" {
			continue
		}
		t.Run(filepath.Base(k.file), func(t *testing.T) {
			t.Parallel()
			rotation.Turn(t, (len(files)+1)/2, files, k.file)
			k.run(t)
		})
	}
	if len(files) == 0 {
		t.Error("no document has a block that is marked as long")
	}
}
