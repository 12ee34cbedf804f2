package iotrace

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// TestEncodings: a trace is the same in every encoding.
func TestEncodings(t *testing.T) {
	plain, err := os.ReadFile("testdata/biosnoop.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Parse(bytes.NewReader(plain), "")
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for encoding, text := range map[string][]byte{"mark": append([]byte("\ufeff"), plain...),
		"zstd": z.EncodeAll(plain, nil)} {
		got, err := Parse(bytes.NewReader(text), "")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", encoding, err, diff)
		}
	}
}
