package bundle

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestRemoteWrites checks that the requests of an output are read in order, live, after a close, and up to a torn tail.
func TestRemoteWrites(t *testing.T) {
	w := newWriter(t)
	large := bytes.Repeat([]byte("x"), chunkSize)
	want := [][]byte{[]byte("one"), large, []byte("two")}
	for _, body := range want {
		w.RemoteWrite("prometheus", body)
	}
	w.RemoteWrite("other", []byte("apart"))
	must(t, w.Flush())
	live, err := Open(w.Dir())
	must(t, err)
	equal(t, "live", collect(t, live.RemoteWrites("prometheus")), want)

	file := filepath.Join(w.Dir(), remoteWriteFile("other"))
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(text, text[:len(text)-1]...), 0o644))
	torn, err := Open(w.Dir())
	must(t, err)
	equal(t, "torn", collect(t, torn.RemoteWrites("other")), [][]byte{[]byte("apart")})
	must(t, os.WriteFile(file, text, 0o644))

	must(t, w.Close(func(r *Run) { r.State = Complete }))
	closed, err := Open(w.Dir())
	must(t, err)
	equal(t, "closed", collect(t, closed.RemoteWrites("prometheus")), want)
	if none := collect(t, closed.RemoteWrites("absent")); len(none) > 0 {
		t.Errorf("%d requests of no output", len(none))
	}
}

// FuzzRemoteWrites checks that decoded requests are those that were encoded.
func FuzzRemoteWrites(f *testing.F) {
	f.Add(appendText(appendText(nil, "one"), "two"))
	f.Add([]byte{0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		bodies, err := decodeRemoteWrites(b)
		if err != nil {
			return
		}
		var again []byte
		for _, body := range bodies {
			again = appendText(again, string(body))
		}
		second, err := decodeRemoteWrites(again)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "requests", second, bodies)
	})
}
