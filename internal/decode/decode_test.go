package decode

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
)

func compressed(t testing.TB, text string, to func(io.Writer) (io.WriteCloser, error)) string {
	t.Helper()
	var b bytes.Buffer
	w, err := to(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(w io.Writer) (io.WriteCloser, error)   { return gzip.NewWriter(w), nil }
func zstandard(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }

func TestText(t *testing.T) {
	const text = "p99 = 12 µs\nend\n"
	little, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	big, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{
		"plain": text, "mark": "\xef\xbb\xbf" + text, "UTF-16LE": little, "UTF-16BE": big,
		"gzip": compressed(t, text, gzipped), "zstd": compressed(t, text, zstandard),
		"gzip of UTF-16":   compressed(t, little, gzipped),
		"two gzip members": compressed(t, text[:5], gzipped) + compressed(t, text[5:], gzipped),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Text(strings.NewReader(in), 1<<20); err != nil || got != text {
				t.Errorf("%q, %v", got, err)
			}
			if got, err := Text(strings.NewReader(in), int64(len(text))); err != nil || got != text {
				t.Errorf("at the limit: %q, %v", got, err)
			}
			if _, err := Text(strings.NewReader(in), int64(len(text)-1)); !errors.Is(err, ErrTooLarge) {
				t.Errorf("beyond the limit: %v", err)
			}
		})
	}
}

func TestTextCutOff(t *testing.T) {
	long := strings.Repeat("0123456789 abcdefghij\n", 1000)
	for _, to := range []func(io.Writer) (io.WriteCloser, error){gzipped, zstandard} {
		whole := compressed(t, long, to)
		_, err := Text(strings.NewReader(whole[:len(whole)-9]), 1<<20)
		if err == nil || !strings.Contains(err.Error(), "is cut off") {
			t.Errorf("%v: want an error that says so", err)
		}
	}
}

func TestWithoutPrefixes(t *testing.T) {
	const plain = "+ fio job\n{\n  \"jobs\": []\n\n}\n"
	with := func(prefix string) string {
		var b strings.Builder
		for line := range strings.Lines(plain) {
			b.WriteString(prefix + line)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, in, note string }{
		{"none", plain, ""},
		{"kubectl --timestamps", with("2026-11-29T06:32:44.123456789Z "), "the time of each line"},
		{"with a zone", with("2026-11-29T06:32:44.123456789+01:00 "), "the time of each line"},
		{"kubectl --prefix", with("[pod/fio-abc/fio] "), "the pod and container of each line"},
		{"both", with("[pod/fio-abc/fio] 2026-11-29T06:32:44.123456789Z "),
			"the pod and container of each line, the time of each line"},
		{"CRI", with("2026-11-29T06:32:44.123456789Z stdout F "), "the time, stream and tag of the container runtime"},
		{"Docker", `{"log":"+ fio job\n","stream":"stderr","time":"2026-11-29T06:32:44.1Z"}` + "\n" +
			`{"log":"{\n","stream":"stdout","time":"2026-11-29T06:32:44.1Z"}` + "\n" +
			`{"log":"  \"jobs\": []\n","stream":"stdout","time":"2026-11-29T06:32:44.1Z"}` + "\n" +
			`{"log":"\n","stream":"stdout","time":"2026-11-29T06:32:44.1Z"}` + "\n" +
			`{"log":"}\n","stream":"stdout","time":"2026-11-29T06:32:44.1Z"}` + "\n",
			"the JSON of each line of Docker's log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, note, err := WithoutPrefixes(tt.in)
			if err != nil || got != plain || note != tt.note {
				t.Errorf("%q, %q, %v; want %q, %q", got, note, err, plain, tt.note)
			}
		})
	}
	if _, _, err := WithoutPrefixes("[pod/a/fio] 1\n[pod/b/fio] 2\n"); err == nil {
		t.Error("lines of two pods are accepted")
	}
	partly := "2026-11-29T06:32:44Z a\nb\n"
	if got, note, err := WithoutPrefixes(partly); got != partly || note != "" || err != nil {
		t.Errorf("%q, %q, %v: want it as it is", got, note, err)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("a\n"))
	f.Add([]byte(compressed(f, "abc", gzipped)))
	f.Add([]byte(compressed(f, "abc", zstandard)))
	f.Fuzz(func(t *testing.T, in []byte) {
		text, err := Text(bytes.NewReader(in), 1<<16)
		if err == nil && len(text) > 1<<16 {
			t.Errorf("%d bytes", len(text))
		}
		_, _, _ = WithoutPrefixes(text)
	})
}

// TestTextMemory: a text takes the memory of two, and removing prefixes that it has not takes none.
func TestTextMemory(t *testing.T) {
	const size = 32 << 20
	for name, line := range map[string]string{"empty lines": "\n", "lines": "0123456789 abcdefghij\n"} {
		t.Run(name, func(t *testing.T) {
			in := strings.NewReader(strings.Repeat(line, size/len(line)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			text, err := Text(in, size)
			if err == nil {
				text, _, err = WithoutPrefixes(text)
			}
			runtime.ReadMemStats(&after)
			if err != nil || int64(len(text)) != in.Size() {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > size*5/2 {
				t.Errorf("%d MiB are allocated", n>>20)
			}
		})
	}
}
