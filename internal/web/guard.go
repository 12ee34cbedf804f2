package web

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// guard refuses requests to change something that a page of another site can send with the user's password, and all of
// them if the server only reads. Those of a queue are all requests below /api/v1/queue but GET.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case cross.Check(r) != nil:
			refuse(w, r, http.StatusForbidden, "the request comes from another site")
		case s.Queue == nil && strings.HasPrefix(r.URL.Path, "/api/v1/queue"):
			refuse(w, r, http.StatusForbidden, onlyReads)
		case r.Method != http.MethodDelete && (err != nil || kind != "application/json"):
			refuse(w, r, http.StatusUnsupportedMediaType, "invalid Content-Type: want application/json")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers with a problem, as the requests of the API do.
func refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if r.ProtoMajor == 1 { // of HTTP/2 it would end the connection of other requests
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: detail})
}
