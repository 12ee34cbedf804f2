package decode_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cnsbench/cnsbench/internal/decode"
)

// TestYield checks that a small compressed file yields no more than 64 MiB, of each kind, and that no other package
// decompresses.
func TestYield(t *testing.T) {
	compressors := map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
	for name, to := range compressors {
		for _, tt := range []struct {
			name string
			mib  int
			text []byte
			want error
		}{
			{"a log", 2, []byte(strings.Repeat("GET /bucket/key 200 0.0123\n", 1000)), nil},
			{"up to the limit", 64, make([]byte, 1<<20), nil},
			{"a bomb", 80, make([]byte, 1<<20), decode.ErrTooLarge},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				var file bytes.Buffer
				w := to(&file)
				for range tt.mib {
					if _, err := w.Write(tt.text); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				r, err := decode.NewReader(&file, 1<<40)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				n, err := io.Copy(io.Discard, r)
				if !errors.Is(err, tt.want) || n > 64<<20 {
					t.Errorf("%d MiB, %v; want %v", n>>20, err, tt.want)
				}
			})
		}
	}
}

// TestOneDecoder: who decompresses elsewhere has no limit of what a file yields.
func TestOneDecoder(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Dir(path) == filepath.Join("..", "decode") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, bad := range []string{"gzip.NewReader", "zstd.NewReader", "flate.NewReader", "zlib.NewReader", "bzip2.NewReader"} {
			if bytes.Contains(text, []byte(bad)) {
				t.Errorf("%s has %s: use decode.NewReader", path, bad)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
