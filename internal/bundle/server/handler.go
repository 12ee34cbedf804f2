package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxChunk bounds one append.
	maxChunk = 8 << 20
	// sizeHeader carries a file's size.
	sizeHeader = "Cnsbench-Size"
)

// Handler serves a Store; docs/format/results-api.md describes its API, and docs/design/results.md its
// defences.
type Handler struct {
	Store *Store
	Auth  Authenticator
	// Render renders a page about the bundle in a directory; nil: no pages.
	Render Renderer
	// Log receives the server's own errors; may be nil.
	Log func(string)
	// Pace bounds the duration of bodies and responses; zero: the default.
	Pace Pace

	mux          *http.ServeMux
	requestSlots *slots        // requests per namespace
	heavySlots   *slots        // pages and closings per namespace: one at a time
	pages        chan struct{} // concurrently rendered pages
}

// Serve returns the HTTP handler.
func (h *Handler) Serve() http.Handler {
	h.mux, h.pages = http.NewServeMux(), make(chan struct{}, maxPages)
	h.requestSlots, h.heavySlots = newSlots(slotsPerNamespace, slotWait), newSlots(1, renderTimeout)
	h.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	h.mux.HandleFunc("GET /v1/runs", h.authenticated(h.list))
	const run, file = "/v1/runs/{ns}/{id}", "/v1/runs/{ns}/{id}/files/{path...}"
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET " + run:              h.info,
		"DELETE " + run:           h.deleteRun,
		"GET " + run + "/files":   h.files,
		"GET " + file:             h.read,
		"PUT " + file:             h.put,
		"DELETE " + file:          h.remove,
		"POST " + run + "/close":  h.close,
		"POST " + run + "/lost":   h.lost,
		"GET " + run + "/report":  h.page("report", "text/html; charset=utf-8"),
		"GET " + run + "/summary": h.page("summary", "application/json"),
	} {
		h.mux.HandleFunc(pattern, h.authorized(serve))
	}
	return h.paced(h.mux)
}

// authenticated identifies the sender of a request before it is served.
func (h *Handler) authenticated(serve func(http.ResponseWriter, *http.Request, Caller) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := h.Auth.Identify(r)
		if err == nil {
			err = serve(w, r, who)
		}
		if err != nil {
			h.fail(w, err)
		}
	}
}

// authorized checks the sender's rights on one run before the request is served in a slot of its namespace.
func (h *Handler) authorized(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return h.authenticated(func(w http.ResponseWriter, r *http.Request, who Caller) error {
		namespace, id := r.PathValue("ns"), r.PathValue("id")
		if err := checkRun(namespace, id); err != nil {
			return err
		}
		if err := who.Allow(r.Context(), h.verb(r, namespace, id), namespace); err != nil {
			return err
		}
		release, err := h.requestSlots.take(r.Context(), namespace)
		if err != nil {
			return err
		}
		defer release()
		return serve(w, r)
	})
}

// verb returns the verb of a request. Any change of a run, including removing its files, is an update; its
// first write creates it.
func (h *Handler) verb(r *http.Request, namespace, id string) string {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return verbGet
	case r.Method == http.MethodDelete && r.PathValue("path") == "":
		return verbDelete
	case r.Method == http.MethodPut && !h.Store.exists(namespace, id):
		return verbCreate
	}
	return verbUpdate
}

// problem is the body of an error response.
type problem struct {
	Error string `json:"error"`
	Size  *int64 `json:"size,omitempty"` // offset at which to append
}

// fail sends an error response.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	p := problem{Error: strings.TrimPrefix(err.Error(), "results: ")}
	status := http.StatusInternalServerError
	var denied *Denied
	var offset *OffsetError
	switch {
	case errors.As(err, &denied):
		status = denied.Status
	case errors.As(err, &offset):
		status, p.Size = http.StatusConflict, &offset.Size
	case errors.Is(err, errNoSlot):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "5")
	case errors.Is(err, os.ErrDeadlineExceeded):
		status = http.StatusRequestTimeout
	case errors.Is(err, ErrClosed):
		status = http.StatusGone
	case errors.Is(err, ErrBusy):
		status = http.StatusLocked
	case errors.Is(err, ErrTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrName), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST), errors.Is(err,
		syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, io.ErrUnexpectedEOF):
		status = http.StatusBadRequest
	case errors.Is(err, ErrNoRun), errors.Is(err, fs.ErrNotExist):
		status = http.StatusNotFound
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, ErrQuota):
		status = http.StatusInsufficientStorage
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusGone,
		http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable:
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	if status >= 500 && h.Log != nil {
		h.Log(p.Error)
	}
	reply(w, status, p)
}

func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the reader may be gone
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, who Caller) error {
	namespace := r.URL.Query().Get("namespace")
	if namespace != "" && !namespaceName.MatchString(namespace) {
		return fmt.Errorf("%w: namespace %q", ErrName, clip(namespace))
	}
	if err := who.Allow(r.Context(), verbList, namespace); err != nil {
		return err
	}
	release, err := h.requestSlots.take(r.Context(), namespace)
	if err != nil {
		return err
	}
	defer release()
	runs, err := h.Store.List(r.Context(), namespace)
	if err == nil {
		reply(w, http.StatusOK, runs)
	}
	return err
}

func (h *Handler) info(w http.ResponseWriter, r *http.Request) error {
	info, err := h.Store.Info(r.PathValue("ns"), r.PathValue("id"))
	if err == nil {
		reply(w, http.StatusOK, info)
	}
	return err
}

func (h *Handler) deleteRun(w http.ResponseWriter, r *http.Request) error {
	err := h.Store.Delete(r.PathValue("ns"), r.PathValue("id"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// folder opens the run of a request for reading.
func (h *Handler) folder(r *http.Request) (*Folder, func(), error) {
	run, release, err := h.Store.open(r.PathValue("ns"), r.PathValue("id"), false)
	if err != nil {
		return nil, nil, err
	}
	return run.folder, release, nil
}

func (h *Handler) files(w http.ResponseWriter, r *http.Request) error {
	f, release, err := h.folder(r)
	if err != nil {
		return err
	}
	defer release()
	files, err := f.Files(r.Context())
	if err == nil {
		reply(w, http.StatusOK, files)
	}
	return err
}

func (h *Handler) read(w http.ResponseWriter, r *http.Request) error {
	offset, err := offsetOf(r)
	if err != nil {
		return err
	}
	f, release, err := h.folder(r)
	if err != nil {
		return err
	}
	defer release()
	body, size, err := f.open(r.PathValue("path"), offset)
	if err != nil {
		return err
	}
	defer body.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size-offset, 10))
	w.Header().Set(sizeHeader, strconv.FormatInt(size, 10))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// On an error the reader is gone, or detects the truncation by Content-Length.
	_, _ = io.CopyBuffer(w, body, make([]byte, pieceSize))
	return nil
}

func offsetOf(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("offset")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: offset %q: want a number of bytes", ErrName, clip(text))
	}
	return n, nil
}

// Ack acknowledges an append: Size bytes of the file are durable.
type Ack struct {
	Size int64 `json:"size"`
}

func (h *Handler) put(w http.ResponseWriter, r *http.Request) error {
	namespace, id, name := r.PathValue("ns"), r.PathValue("id"), r.PathValue("path")
	if r.URL.Query().Get("replace") == "1" {
		if err := h.Store.Replace(namespace, id, name, h.body(w, r), r.ContentLength); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	offset, err := offsetOf(r)
	if err != nil {
		return err
	}
	size, err := h.Store.AppendFrom(namespace, id, name, offset, h.body(w, r), r.ContentLength)
	if err == nil {
		reply(w, http.StatusOK, Ack{size})
	}
	return err
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	err := h.Store.Remove(r.Context(), r.PathValue("ns"), r.PathValue("id"), r.PathValue("path"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// Closing is the response to close.
type Closing struct {
	Closed  bool         `json:"closed"`
	Differs []Difference `json:"differs"`
}

func (h *Handler) close(w http.ResponseWriter, r *http.Request) error {
	namespace, id := r.PathValue("ns"), r.PathValue("id")
	release, err := h.heavySlots.take(r.Context(), namespace)
	if err != nil {
		return err
	}
	defer release()
	differences, err := h.Store.Seal(r.Context(), namespace, id, h.body(w, r), r.ContentLength)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if len(differences) > 0 {
		status = http.StatusConflict
	}
	reply(w, status, Closing{Closed: len(differences) == 0, Differs: append([]Difference{}, differences...)})
	return nil
}

// Loss is the body of lost.
type Loss struct {
	Reason string `json:"reason"`
}

func (h *Handler) lost(w http.ResponseWriter, r *http.Request) error {
	const most = 16 << 10
	b, err := io.ReadAll(io.LimitReader(h.body(w, r), most+1))
	if err == nil && len(b) > most {
		err = fmt.Errorf("%w: body longer than %d bytes", ErrTooLarge, most)
	}
	if err != nil {
		return err
	}
	loss := Loss{Reason: "the runner was lost"}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &loss); err != nil {
			return fmt.Errorf("%w: body: want {\"reason\": …}: %w", ErrName, err)
		}
	}
	if err := h.Store.Lost(r.PathValue("ns"), r.PathValue("id"), loss.Reason); err != nil {
		return err
	}
	return h.info(w, r)
}

func (h *Handler) body(w http.ResponseWriter, r *http.Request) io.Reader {
	return &pacedBody{body: r.Body, control: http.NewResponseController(w), pace: h.pace(), began: time.Now()}
}
