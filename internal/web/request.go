package web

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// body is an answer.
type body[T any] struct{ Body T }

// rawJSON is an answer that is JSON already.
type rawJSON struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// get registers a request.
func get[I, O any](a huma.API, name, path string, f func(context.Context, *I) (*O, error)) {
	huma.Register(a, huma.Operation{OperationID: name, Method: http.MethodGet, Path: path}, f)
}
