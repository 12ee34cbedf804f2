package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/catalog"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/version"
)

// Run is a bundle or a study as the list has it. Paths in it are IDs.
type Run struct {
	ID string `json:"id" doc:"path below the directory; in URLs of the API its slashes are escaped"`
	catalog.Entry
	History int `json:"history,omitempty" doc:"runs of its Benchmark's history, of which it is one; missing below 3"`
}

// List is what there is in the directory.
type List struct {
	Dir     string    `json:"dir"`
	Version string    `json:"version"`
	Now     time.Time `json:"now"`
	Entries []Run     `json:"entries"`
}

// StudyState is how far a study is.
type StudyState struct {
	// Status is missing of a search; Order of the trials, by occasion and block.
	Status *study.Status `json:"status,omitempty"`
	Order  []Trial       `json:"order"`
}

// Trial is a planned trial of a study.
type Trial struct {
	ID       string        `json:"id" doc:"of the bundle, which is there once it has begun"`
	Name     string        `json:"name"`
	Cell     int           `json:"cell"`
	Levels   []study.Level `json:"levels"`
	Occasion int           `json:"occasion"`
	Block    int           `json:"block"`
}

// maxCards is the number of cards of one request, maxCompared that of bundles.
const (
	maxCards    = 50
	maxCompared = 50
)

type idInput struct {
	ID string `path:"id" doc:"ID of the run or study, its slashes escaped"`
}

type idsInput struct {
	Run []string `query:"run,explode" doc:"ID of a run; repeated"`
}

// api adds the requests of /api/v1.
func (s *Server) api(mux *http.ServeMux) huma.API {
	conf := huma.DefaultConfig("CNSBench", "1")
	conf.Info.Description = "The API of cnsbench serve DIR. It only reads, unless --allow-run is set."
	conf.OpenAPIPath, conf.DocsPath, conf.SchemasPath = "/api/v1/openapi", "", ""
	conf.CreateHooks = nil // no links to schemas in answers
	conf.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	conf.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	a := humago.New(mux, conf)
	get(a, "listRuns", "/api/v1/runs", s.list)
	get(a, "cards", "/api/v1/cards", s.cardsOf)
	get(a, "compare", "/api/v1/compare", s.compare)
	get(a, "responses", "/api/v1/responses", s.responses)
	get(a, "history", "/api/v1/history", s.history)
	get(a, "study", "/api/v1/studies/{id}", s.study)
	get(a, "summary", "/api/v1/runs/{id}/summary", s.summary)
	s.events(a)
	s.build(a)
	s.queue(a)
	return a
}

// jsonFormat is the format of answers. It ignores errors of writing, because the reader may be gone: huma sets a second
// status upon them, which net/http logs as a superfluous call.
var jsonFormat = huma.Format{Unmarshal: huma.DefaultJSONFormat.Unmarshal, Marshal: func(w io.Writer, v any) error {
	var b bytes.Buffer
	err := huma.DefaultJSONFormat.Marshal(&b, v)
	if err == nil {
		_, _ = w.Write(b.Bytes())
	}
	return err
}}

// OpenAPI returns the description of the API, in YAML.
func OpenAPI() ([]byte, error) { return new(Server).api(http.NewServeMux()).OpenAPI().YAML() }

// schemaName names a schema after package and type: two packages have a Level.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	pkg := []rune(path.Base(t.PkgPath()))
	if len(pkg) < 2 || t.PkgPath() == reflect.TypeFor[Run]().PkgPath() {
		return name
	}
	return string(unicode.ToUpper(pkg[0])) + string(pkg[1:]) + name
}

func (s *Server) list(context.Context, *struct{}) (*body[List], error) {
	all, err := s.entries()
	if err != nil {
		return nil, problem(err)
	}
	countHistories(all)
	slices.SortStableFunc(all, func(a, b Run) int { return b.Started.Compare(a.Started) })
	return &body[List]{List{Dir: s.Dir, Version: version.Version, Now: time.Now(), Entries: all}}, nil
}

// entries are all bundles and studies in the directory.
func (s *Server) entries() ([]Run, error) {
	found, err := s.found.Find([]string{s.Dir})
	all := []Run{}
	for _, e := range found {
		r := Run{ID: s.idOf(e.Path), Entry: e}
		r.Path = r.ID
		if e.Study != "" {
			r.Study = s.idOf(e.Study)
		}
		all = append(all, r)
	}
	return all, err
}

func (s *Server) cardsOf(_ context.Context, in *idsInput) (*body[[]Card], error) {
	if len(in.Run) > maxCards {
		return nil, huma.Error400BadRequest("too many runs: want at most 50")
	}
	list := []Card{}
	for _, id := range in.Run {
		dir, err := s.place(id, runFile)
		if err != nil {
			list = append(list, Card{ID: id, Headline: []string{}, Error: err.Error()})
			continue
		}
		list = append(list, s.cards.of(id, dir))
	}
	return &body[[]Card]{list}, nil
}

// compared are the runs of a comparison.
func (s *Server) compared(in *idsInput) ([]Labelled, error) {
	if len(in.Run) < 2 || len(in.Run) > maxCompared {
		return nil, huma.Error400BadRequest("want 2 to 50 runs to compare")
	}
	var runs []Labelled
	for _, id := range in.Run {
		dir, err := s.place(id, runFile)
		if err != nil {
			return nil, problem(err)
		}
		// A label ends at =.
		runs = append(runs, Labelled{Label: strings.ReplaceAll(shortID(id, in.Run), "=", ":"), Dir: dir})
	}
	return runs, nil
}

// maxCurves is the number of runs whose distributions are drawn over each other: two styles of five colours.
const maxCurves = 10

func (s *Server) responses(ctx context.Context, in *idsInput) (*body[[]Overlay], error) {
	runs, err := s.compared(in)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.turn(ctx)
	if err != nil {
		return nil, problem(err)
	}
	defer done()
	list, err := s.Responses(ctx, runs[:min(len(runs), maxCurves)])
	return &body[[]Overlay]{list}, problem(err)
}

func (s *Server) compare(ctx context.Context, in *idsInput) (*body[*compare.Result], error) {
	runs, err := s.compared(in)
	if err != nil {
		return nil, err
	}
	r, err := s.Compare(ctx, runs)
	if err != nil { // of the runs: they did not complete, or are of other workloads
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	return &body[*compare.Result]{r}, nil
}

// shortID is the last element of an ID, or the whole where another one has the same.
func shortID(id string, all []string) string {
	same := 0
	for _, other := range all {
		if path.Base(other) == path.Base(id) {
			same++
		}
	}
	if same == 1 {
		return path.Base(id)
	}
	return id
}

func (s *Server) study(_ context.Context, in *idInput) (*body[StudyState], error) {
	dir, err := s.place(in.ID, studyFile)
	if err != nil {
		return nil, problem(err)
	}
	d, err := study.Open(dir)
	if err != nil {
		return nil, problem(err)
	}
	st := StudyState{Order: []Trial{}}
	for _, t := range d.Trials {
		c := d.Cells[t.Cell]
		st.Order = append(st.Order, Trial{ID: s.idOf(d.Of(t)), Name: t.Name, Cell: t.Cell, Levels: c.Levels,
			Occasion: t.Occasion, Block: t.Block})
	}
	if d.Search == nil {
		if st.Status, err = d.Status(); err != nil {
			return nil, problem(err)
		}
	}
	return &body[StudyState]{st}, nil
}

func (s *Server) summary(ctx context.Context, in *idInput) (*rawJSON, error) {
	dir, err := s.place(in.ID, runFile)
	if err != nil {
		return nil, problem(err)
	}
	text, err := s.render(ctx, "summary", dir)
	return &rawJSON{"application/json", text}, problem(err)
}
