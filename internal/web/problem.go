package web

import (
	"errors"

	"github.com/danielgtaylor/huma/v2"
)

// errNotFound says that there is no such run or study.
var errNotFound = errors.New("not found")

// problem is the answer to an error.
func problem(err error) error {
	switch {
	case errors.Is(err, errNotFound):
		return huma.Error404NotFound(err.Error())
	case err != nil:
		return huma.Error500InternalServerError(err.Error())
	}
	return nil
}
