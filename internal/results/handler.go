package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/record"
)

const (
	// maxChunk bounds one append, which is held in memory.
	maxChunk = 8 << 20
	// maxBodies bounds the appends held at once.
	maxBodies = 16
	// maxManifest bounds what close takes.
	maxManifest = 32 << 20
	// bodyStall ends a request whose sender is silent for so long.
	bodyStall = 60 * time.Second
	// sizeHeader carries a file's size.
	sizeHeader = "Cnsbench-Size"
)

// Handler serves a Store; docs/format/results-api.md describes it. Report and
// Summary turn a bundle into what is shown.
type Handler struct {
	Store   *Store
	Auth    Authenticator
	Report  func(io.Writer, *record.Bundle) error
	Summary func(*record.Bundle) (any, error)
	// Log is told of errors that are the server's own; may be nil.
	Log func(string)

	mux    *http.ServeMux
	bodies chan struct{}
	pages  chan struct{} // one page is made at a time: it takes memory
}

// Serve makes the handler ready to serve.
func (h *Handler) Serve() http.Handler {
	h.mux, h.bodies, h.pages = http.NewServeMux(), make(chan struct{}, maxBodies), make(chan struct{}, 1)
	h.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	h.mux.HandleFunc("GET /v1/runs", h.list)
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
		"GET " + run + "/report":  h.report,
		"GET " + run + "/summary": h.summary,
	} {
		h.mux.HandleFunc(pattern, h.allowed(serve))
	}
	return h.mux
}

// allowed authenticates a request about one run before it is served.
func (h *Handler) allowed(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace, id := r.PathValue("ns"), r.PathValue("id")
		err := checkRun(namespace, id)
		if err == nil {
			err = h.Auth.Allow(r, h.verb(r, namespace, id), namespace)
		}
		if err == nil {
			err = serve(w, r)
		}
		if err != nil {
			h.fail(w, err)
		}
	}
}

// verb says what a request wants. Whatever changes a run, its files gone
// included, is an update of it; its first write creates it.
func (h *Handler) verb(r *http.Request, namespace, id string) string {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return verbGet
	case r.Method == http.MethodDelete && r.PathValue("path") == "":
		return verbDelete
	case r.Method == http.MethodPut:
		if _, err := h.Store.Info(namespace, id); errors.Is(err, ErrNoRun) {
			return verbCreate
		}
	}
	return verbUpdate
}

// problem is the body of an answer that is an error.
type problem struct {
	Error string `json:"error"`
	Size  *int64 `json:"size,omitempty"` // where to append instead
}

// fail answers with an error, in the status that says whose it is.
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
	case errors.Is(err, ErrClosed):
		status = http.StatusGone
	case errors.Is(err, ErrBusy):
		status = http.StatusLocked
	case errors.Is(err, ErrTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrName), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, io.ErrUnexpectedEOF):
		status = http.StatusBadRequest
	case errors.Is(err, ErrNoRun), errors.Is(err, fs.ErrNotExist):
		status = http.StatusNotFound
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		status = http.StatusInsufficientStorage
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
	_, _ = w.Write(append(b, '\n')) // a reader that is gone needs no answer
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) {
	namespace := r.URL.Query().Get("namespace")
	var err error
	if namespace != "" && !namespaceName.MatchString(namespace) {
		err = fmt.Errorf("%w: namespace %q", ErrName, clip(namespace))
	}
	if err == nil {
		err = h.Auth.Allow(r, verbList, namespace)
	}
	var runs []Run
	if err == nil {
		runs, err = h.Store.List(namespace)
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	reply(w, http.StatusOK, runs)
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

// folder gives the run of a request for reading.
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
	_, _ = io.Copy(w, body) // a reader that is gone, or one who sees by the length that it broke off
	return nil
}

func offsetOf(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("offset")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: offset %q is no number of bytes", ErrName, clip(text))
	}
	return n, nil
}

// Ack is the answer to an append: so many bytes of the file are on disk.
type Ack struct {
	Size int64 `json:"size"`
}

func (h *Handler) put(w http.ResponseWriter, r *http.Request) error {
	namespace, id, name := r.PathValue("ns"), r.PathValue("id"), r.PathValue("path")
	body := patientBody(w, r)
	if r.URL.Query().Get("replace") == "1" {
		if err := h.Store.Replace(r.Context(), namespace, id, name, body); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	offset, err := offsetOf(r)
	if err != nil {
		return err
	}
	select {
	case h.bodies <- struct{}{}:
		defer func() { <-h.bodies }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	b, err := readBody(body, maxChunk, r.ContentLength)
	if err != nil {
		return err
	}
	size, err := h.Store.Append(r.Context(), namespace, id, name, offset, b)
	if err == nil {
		reply(w, http.StatusOK, Ack{size})
	}
	return err
}

// readBody reads a body whole or not at all.
func readBody(r io.Reader, limit, announced int64) ([]byte, error) {
	if announced > limit {
		return nil, fmt.Errorf("%w: a body of %d bytes; at most %d", ErrTooLarge, announced, limit)
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: the body has more than %d bytes", ErrTooLarge, limit)
	}
	return b, err
}

// patient is a body whose sender may be slow, but not silent.
type patient struct {
	io.Reader
	control *http.ResponseController
}

func patientBody(w http.ResponseWriter, r *http.Request) io.Reader {
	return &patient{r.Body, http.NewResponseController(w)}
}

func (p *patient) Read(b []byte) (int, error) {
	// Without the power to set a deadline (a test's recorder) there is none.
	_ = p.control.SetReadDeadline(time.Now().Add(bodyStall))
	return p.Reader.Read(b)
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	err := h.Store.Remove(r.Context(), r.PathValue("ns"), r.PathValue("id"), r.PathValue("path"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// Closing is the answer to close.
type Closing struct {
	Closed  bool         `json:"closed"`
	Differs []Difference `json:"differs"`
}

func (h *Handler) close(w http.ResponseWriter, r *http.Request) error {
	manifest, err := readBody(patientBody(w, r), maxManifest, r.ContentLength)
	if err != nil {
		return err
	}
	differences, err := h.Store.Seal(r.Context(), r.PathValue("ns"), r.PathValue("id"), manifest)
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
	b, err := readBody(patientBody(w, r), 16<<10, r.ContentLength)
	if err != nil {
		return err
	}
	loss := Loss{Reason: "the runner was lost"}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &loss); err != nil {
			return fmt.Errorf("%w: the body is no {\"reason\": …}: %w", ErrName, err)
		}
	}
	if err := h.Store.Lost(r.PathValue("ns"), r.PathValue("id"), loss.Reason); err != nil {
		return err
	}
	return h.info(w, r)
}

// bundle opens the bundle of a request, one at a time.
func (h *Handler) bundle(ctx context.Context, r *http.Request, show func(*record.Bundle) error) error {
	f, release, err := h.folder(r)
	if err != nil {
		return err
	}
	defer release()
	if _, err := f.root.Lstat(runFile); err != nil {
		return err // nothing to show yet
	}
	select {
	case h.pages <- struct{}{}:
		defer func() { <-h.pages }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b, err := record.Open(h.Store.path(r.PathValue("ns"), r.PathValue("id")))
	if err != nil {
		return err
	}
	return show(b)
}

func (h *Handler) report(w http.ResponseWriter, r *http.Request) error {
	return h.bundle(r.Context(), r, func(b *record.Bundle) error {
		var page strings.Builder
		if err := h.Report(&page, b); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// The page needs nothing but itself, and names in it are not ours.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox")
		_, _ = io.WriteString(w, page.String()) // a reader that is gone needs none
		return nil
	})
}

func (h *Handler) summary(w http.ResponseWriter, r *http.Request) error {
	return h.bundle(r.Context(), r, func(b *record.Bundle) error {
		s, err := h.Summary(b)
		if err == nil {
			reply(w, http.StatusOK, s)
		}
		return err
	})
}
