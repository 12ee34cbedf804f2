package swift

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzKeystone asks for a token at a service that answers anything. It must end with an error, or with a token that a
// header can have and the address of a store.
func FuzzKeystone(f *testing.F) {
	const catalog = `"serviceCatalog":[{"type":"object-store","endpoints":[{"publicURL":"http://h/v1"}]}]`
	for _, text := range []string{
		`{"access":{"token":{"id":"t"},` + catalog + `}}`, `{"access":{"token":{"id":"t\r\nX-Evil: 1"},` + catalog + `}}`,
		`{"token":{"catalog":[{"type":"object-store","endpoints":[{"interface":"public","url":"http://h/v1"}]}]}}`,
		"", "null", "{", `{"access":null}`, `{"token":{"catalog":[null]}}`,
	} {
		f.Add(true, "t", text)
		f.Add(false, "t", text)
	}
	var header, answer string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Subject-Token", header)
		_, _ = w.Write([]byte(answer))
	}))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, third bool, subject, text string) {
		kind, path := "keystonev2", "/v2.0"
		if third {
			kind, path = "keystonev3", "/v3"
		}
		header, answer = subject, text
		s := open(t, Config{AuthKind: kind, Auth: map[string]string{"auth_url": server.URL + path, "username": "u"}})
		a, err := s.tokens.ask(t.Context())
		if err != nil {
			return
		}
		if a.token == "" || a.storageURL == "" || strings.ContainsAny(a.token, "\r\n ") {
			t.Errorf("%q: token %q, store %q", text, a.token, a.storageURL)
		}
	})
}
