package trace

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
)

// TestEncodings: a trace is the same in every encoding.
func TestEncodings(t *testing.T) {
	for _, name := range []string{"a.csv", "a.jsonl"} {
		var plain bytes.Buffer
		if err := Write(&plain, name, sample()); err != nil {
			t.Fatal(err)
		}
		want, err := Read(bytes.NewReader(plain.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		utf16, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().Bytes(plain.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		for encoding, text := range map[string][]byte{"mark": append([]byte("\ufeff"), plain.Bytes()...), "UTF-16": utf16,
			"zstd": z.EncodeAll(plain.Bytes(), nil)} {
			got, err := Read(bytes.NewReader(text))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s, %s: %v %s", name, encoding, err, diff)
			}
		}
	}
}
