package nullserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/clienttest"
)

func TestCounts(t *testing.T) {
	base := clienttest.Loopback(t, Options{Size: 100}.Serve)
	do := func(method, path string) string {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, q := range []string{"GET /b/o", "GET /v1/a/c/o", "PUT /b/o", "PUT /b/o?partNumber=1", "PUT /b", "GET /b",
		"HEAD /b/o", "DELETE /b/o", "POST /b/o?uploads"} {
		method, path, _ := strings.Cut(q, " ")
		do(method, path)
	}
	for range 2 { // asking does not count
		if got, want := do("GET", CountsPath), `{"Get":2,"Put":1,"Other":6}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
