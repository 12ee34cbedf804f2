// Package web is the web interface: it serves a directory of bundles and studies, for reading only. It shows figures of
// the packages of analysis and computes none of a finished run.
//
// A run or a study has as its ID its path below the directory, with slashes; the directory itself has RootID. Paths are
// opened below an os.Root, and a bundle with a symbolic link in it is refused.
package web

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/catalog"
)

//go:embed assets
var assets embed.FS

// RootID is the ID of the served directory where it is a bundle or a study itself.
const RootID = "_"

// Labelled is a bundle with the level that it is a trial of.
type Labelled struct{ Label, Dir string }

// Options are what the interface is made of.
type Options struct {
	Dir string
	// Render writes the "report" or the "summary" of a bundle, or the "study" page of a study. It ends with ctx.
	Render func(ctx context.Context, what, dir string, w io.Writer) error
	// Compare compares bundles, as the command compare does.
	Compare func(ctx context.Context, runs []Labelled) (*compare.Result, error)
}

// Server serves the web interface. Its methods are safe for concurrent use.
type Server struct {
	Options
	root *os.Root
	// ctx ends the streams of live runs.
	ctx   context.Context
	found catalog.Cache
	cards cards
	// heavy bounds the pages that are rendered at the same time.
	heavy chan struct{}

	mu   sync.Mutex
	hubs map[string]*hub // of live runs, by directory
}

// maxHeavy is the number of pages that are rendered at the same time; each takes memory.
const maxHeavy = 2

// New opens the directory. Streams end with ctx.
func New(ctx context.Context, o Options) (*Server, error) {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	return &Server{Options: o, root: root, ctx: ctx, heavy: make(chan struct{}, maxHeavy), hubs: map[string]*hub{}}, nil
}

// Close closes the directory.
func (s *Server) Close() error { return s.root.Close() }

// Handler returns the handler of all requests. The caller authenticates them.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.api(mux)
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", asset(files)))
	for _, page := range []string{"GET /{$}", "GET /compare", "GET /studies/{id...}"} {
		mux.HandleFunc(page, s.app(http.StatusOK))
	}
	mux.HandleFunc("GET /runs/{id...}", s.runPage)
	mux.HandleFunc("GET /study-report/{id...}", s.studyPage)
	mux.HandleFunc("GET /", s.app(http.StatusNotFound))
	return headers(mux)
}

// errNotFound says that there is no such run or study.
var errNotFound = errors.New("not found")

// place returns the directory of a bundle or a study, which has a file of that name.
func (s *Server) place(id, file string) (string, error) {
	id = strings.TrimSuffix(id, "/")
	if id == RootID && !s.has(path.Join(id, file)) {
		id = "."
	}
	if !fs.ValidPath(id) || !s.has(path.Join(id, file)) {
		return "", fmt.Errorf("%w: %s has no %s", errNotFound, id, file)
	}
	err := fs.WalkDir(s.root.FS(), id, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			err = fmt.Errorf("%s is neither a file nor a directory: refused", name)
		}
		return err
	})
	return filepath.Join(s.Dir, filepath.FromSlash(id)), err
}

// has reports whether a path is a regular file below the directory.
func (s *Server) has(name string) bool {
	st, err := s.root.Lstat(filepath.FromSlash(name))
	return err == nil && st.Mode().IsRegular()
}

// idOf returns the ID of a path that the catalog found.
func (s *Server) idOf(found string) string {
	id, err := filepath.Rel(s.Dir, found)
	if err != nil || id == "." {
		return RootID
	}
	return filepath.ToSlash(id)
}

// link returns the path of a page of an ID.
func link(page, id string) string {
	parts := strings.Split(id, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/" + page + "/" + strings.Join(parts, "/") + "/"
}
