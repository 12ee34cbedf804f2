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

type checkInput struct {
	Body struct {
		Text   string `json:"text" doc:"YAML"`
		Engine string `json:"engine" doc:"local or kubernetes"`
	}
}

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
			c, err := s.check(ctx, in.Body.Engine, in.Body.Text)
			return &body[Check]{c}, err
		})
}

// check checks a text, after those before it.
func (s *Server) check(ctx context.Context, engine, text string) (Check, error) {
	select {
	case s.checks <- struct{}{}:
		defer func() { <-s.checks }()
	case <-ctx.Done():
		return Check{}, huma.Error503ServiceUnavailable(fmt.Sprintf("too many checks at the same time: %v", ctx.Err()))
	}
	return s.Validate(ctx, engine, text), nil
}
