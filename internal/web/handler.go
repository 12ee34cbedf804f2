package web

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed assets
var assets embed.FS

// Handler returns the handler of all requests. The caller authenticates them.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.api(mux)
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", asset(files)))
	for _, page := range []string{"GET /{$}", "GET /compare", "GET /history", "GET /new", "GET /queue"} {
		mux.HandleFunc(page, s.app(http.StatusOK))
	}
	mux.HandleFunc("GET /studies/{id...}", s.studyState)
	mux.HandleFunc("GET /runs/{id...}", s.runPage)
	mux.HandleFunc("GET /study-report/{id...}", s.studyPage)
	mux.HandleFunc("GET /", s.app(http.StatusNotFound))
	return headers(s.guard(mux))
}
