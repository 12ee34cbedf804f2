package web

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

type eventsInput struct {
	ID   string `path:"id" doc:"ID of the run, its slashes escaped"`
	Last string `header:"Last-Event-ID" doc:"of the last event that was received: the stream goes on after it"`
}

// events registers the stream of a live run.
func (s *Server) events(a huma.API) {
	schema := a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Update](), true, "Update")
	huma.Register(a, huma.Operation{OperationID: "events", Method: http.MethodGet, Path: "/api/v1/runs/{id}/events",
		Description: "Server-sent events of a run in progress, each with an Update; the last has the phase ended.",
		Responses: map[string]*huma.Response{"200": {Description: "the stream",
			Content: map[string]*huma.MediaType{"text/event-stream": {Schema: schema}}}}},
		func(_ context.Context, in *eventsInput) (*huma.StreamResponse, error) {
			dir, err := s.place(in.ID, runFile)
			if err != nil {
				return nil, problem(err)
			}
			if b, err := bundle.Look(dir); err != nil || !b.Live {
				return nil, huma.Error409Conflict("the run is not in progress")
			}
			h, err := s.hubs.join(dir)
			if err != nil {
				return nil, huma.Error503ServiceUnavailable(err.Error())
			}
			return &huma.StreamResponse{Body: func(c huma.Context) {
				defer h.leave()
				_, w := humago.Unwrap(c)
				s.stream(c.Context(), w, h, h.resume(in.Last))
			}}, nil
		})
}

// stream sends events until the run has ended or the reader is gone.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, h *hub, have int) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	for {
		event, now, end, changed := h.next(have)
		if _, err := w.Write(event); err != nil || control.Flush() != nil || end {
			return
		}
		have = now
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-s.hubs.ctx.Done():
			return
		}
		select {
		case <-time.After(h.turn()):
		case <-ctx.Done():
			return
		case <-s.hubs.ctx.Done():
			return
		}
	}
}
