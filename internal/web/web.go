// Package web is the web interface: it serves a directory of bundles and studies for reading, and submits files to a
// queue if it has one. It shows figures of the packages of analysis and computes none of a finished run.
//
// A run or a study has as its ID its path below the directory, with slashes; the directory itself has RootID. Paths are
// opened below an os.Root, and a bundle with a symbolic link in it is refused.
package web

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/catalog"
	"github.com/cnsbench/cnsbench/internal/queue"
)

// RootID is the ID of the served directory where it is a bundle or a study itself.
const RootID = "_"

// Labelled is a bundle with the level that it is a trial of.
type Labelled struct{ Label, Dir string }

// Overlay has the distributions of the response of one action in several runs, over each other.
type Overlay struct {
	Action string  `json:"action"`
	SVG    string  `json:"svg" doc:"the figure, as the report draws figures; its texts are escaped"`
	Curves []Curve `json:"curves"`
}

// Curve is a line of an Overlay.
type Curve struct {
	Label string `json:"label"`
	N     int64  `json:"n"`
	Class string `json:"class" doc:"style class of the line"`
}

// Options are what the interface is made of.
type Options struct {
	Dir string
	// Render writes the "report" or the "summary" of a bundle, or the "study" page of a study. It ends with ctx.
	Render func(ctx context.Context, what, dir string, w io.Writer) error
	// Compare compares bundles, as the command compare does.
	Compare func(ctx context.Context, runs []Labelled) (*compare.Result, error)
	// Responses draws the distributions of the response of each action that several bundles have. It ends with ctx.
	Responses func(ctx context.Context, runs []Labelled) ([]Overlay, error)
	// History searches runs in their order for changes, as the command compare --history does; of a folder, if dir is
	// not empty, what is in it. It ends with ctx.
	History func(ctx context.Context, dir string, runs []Labelled) (*Answer, error)
	// Library returns what a Benchmark can be built from. The caller does not change it.
	Library func() (*Library, error)
	// Validate checks a text, which is a Benchmark or a Study for an engine.
	Validate func(context.Context, Draft) Check
	// Queue runs what is submitted; nil: the interface only reads. Its directory is Dir.
	Queue *queue.Queue
}

// Server serves the web interface. Its methods are safe for concurrent use.
type Server struct {
	Options
	root  *os.Root
	found catalog.Cache
	cards cards
	hubs  hubs
	// heavy bounds the pages that are rendered at the same time.
	heavy chan struct{}
	// checks bounds the texts that are checked at the same time.
	checks chan struct{}
}

// maxHeavy is the number of pages that are rendered at the same time; each takes memory.
const maxHeavy = 2

// New opens the directory. Streams end with ctx.
func New(ctx context.Context, o Options) (*Server, error) {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	return &Server{Options: o, root: root, hubs: hubs{ctx: ctx, all: map[string]*hub{}},
		heavy: make(chan struct{}, maxHeavy), checks: make(chan struct{}, maxChecks)}, nil
}

// Close closes the directory.
func (s *Server) Close() error { return s.root.Close() }

// place returns the directory of a bundle or a study, which has a file of that name.
func (s *Server) place(id, file string) (string, error) {
	id = strings.TrimSuffix(id, "/")
	if id == RootID && !s.has(path.Join(id, file)) {
		id = "."
	}
	if !fs.ValidPath(id) || !s.has(path.Join(id, file)) {
		return "", fmt.Errorf("%w: no file %s/%s in %s", errNotFound, id, file, s.Dir)
	}
	return s.regular(id)
}

// regular returns the directory of a valid path. Whatever is in it must be a file or a directory.
func (s *Server) regular(id string) (string, error) {
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
