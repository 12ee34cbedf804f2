package web

import (
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cnsbench/cnsbench/internal/queue"
)

// errNotFound says that there is no such run or study.
var errNotFound = errors.New("not found")

// problem is the answer to an error.
func problem(err error) error {
	switch {
	case errors.Is(err, errNotFound), errors.Is(err, queue.ErrNotFound):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, queue.ErrState), errors.Is(err, queue.ErrFull):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, queue.ErrInvalid):
		return huma.Error422UnprocessableEntity(err.Error())
	case err != nil:
		return huma.Error500InternalServerError(err.Error())
	}
	return nil
}
