package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cnsbench/cnsbench/config/schema"
)

// maxBody bounds the body of a request: a text, with the escapes of JSON.
const maxBody = 1 << 20

// maxChecks is the number of texts that are checked at the same time.
const maxChecks = 2

// Draft is a text, and where it is to run.
type Draft struct {
	Text      string `json:"text" doc:"a Benchmark or a Study, in YAML"`
	Engine    string `json:"engine" doc:"local or kubernetes"`
	Namespace string `json:"namespace,omitempty" doc:"kubernetes: namespace for all objects of the run"`
}

type checkInput struct{ Body Draft }

// build adds the requests for a new Benchmark. They change nothing.
func (s *Server) build(a huma.API) {
	get(a, "library", "/api/v1/library", func(context.Context, *struct{}) (*body[*Library], error) {
		l, err := s.Library()
		return &body[*Library]{l}, problem(err)
	})
	get(a, "schema", "/api/v1/schema", func(context.Context, *struct{}) (*rawJSON, error) {
		return &rawJSON{"application/schema+json", schema.Benchmark}, nil
	})
	huma.Register(a, huma.Operation{OperationID: "validate", Method: http.MethodPost, Path: "/api/v1/validate",
		Description: "What cnsbench validate --output json prints of a file. Without --allow-run, files that the text " +
			"names and the classes of a cluster are not read.",
		MaxBodyBytes: maxBody},
		func(ctx context.Context, in *checkInput) (*body[Check], error) {
			c, err := s.check(ctx, in.Body)
			return &body[Check]{c}, err
		})
}

// check checks a text, after those before it.
func (s *Server) check(ctx context.Context, d Draft) (Check, error) {
	select {
	case s.checks <- struct{}{}:
		defer func() { <-s.checks }()
	case <-ctx.Done():
		return Check{}, huma.Error503ServiceUnavailable(fmt.Sprintf("too many checks at the same time: %v", ctx.Err()))
	}
	return s.Validate(ctx, d), nil
}
