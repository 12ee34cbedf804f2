package web

import (
	"cmp"
	"context"
	"io/fs"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/queue"
)

// Queue is the queue of submissions.
type Queue struct {
	// AllowRun says that the server runs submissions: it was started with --allow-run.
	AllowRun bool   `json:"allowRun"`
	Dir      string `json:"dir"`
	Paused   bool   `json:"paused" doc:"no further submission is started"`
	// Submissions are those that have ended or run, then those that wait, in their order.
	Submissions []Submission `json:"submissions"`
}

// Submission is a file in the queue.
type Submission struct {
	queue.Submission
	// Begun says that the run or the study of the results has a page.
	Begun bool `json:"begun"`
	// Hosts do the work of the run in progress.
	Hosts []Host `json:"hosts,omitempty"`
}

type submitInput struct {
	Body struct {
		Draft
		Name string `json:"name,omitempty" doc:"of the results; without one, that of the Benchmark"`
	}
}

type submissionInput struct {
	ID string `path:"id" doc:"ID of the submission"`
}

type moveInput struct {
	ID   string `path:"id" doc:"ID of the submission"`
	Body struct {
		By int `json:"by" doc:"places to move by; less than 0, towards the start"`
	}
}

type pauseInput struct {
	Body struct {
		Paused bool `json:"paused"`
	}
}

// onlyReads is the answer to requests that run something.
const onlyReads = "this server only reads: start it as cnsbench serve DIR --allow-run, or run the file with " +
	"cnsbench run"

// queue adds the requests of the queue. Without one, guard refuses those that change it.
func (s *Server) queue(a huma.API) {
	const all, one = "/api/v1/queue", "/api/v1/queue/{id}"
	get(a, "queue", all, s.submissions)
	get(a, "submission", one, func(_ context.Context, in *submissionInput) (*body[Submission], error) {
		if s.Queue == nil {
			return nil, huma.Error404NotFound(onlyReads)
		}
		sub, err := s.Queue.Get(in.ID)
		return s.described(sub, err)
	})
	huma.Register(a, huma.Operation{OperationID: "submit", Method: http.MethodPost, Path: all,
		DefaultStatus: http.StatusCreated, MaxBodyBytes: maxBody}, s.submit)
	huma.Register(a, huma.Operation{OperationID: "resubmit", Method: http.MethodPost, Path: one + "/resubmit",
		DefaultStatus: http.StatusCreated},
		func(_ context.Context, in *submissionInput) (*body[Submission], error) {
			sub, err := s.Queue.Resubmit(in.ID)
			return s.described(sub, err)
		})
	change(a, "cancel", http.MethodPost, one+"/cancel", "Cancels a waiting submission. Interrupts the running one, "+
		"which finishes operations in flight and removes what it created.",
		func(in *submissionInput) error { return s.Queue.Cancel(in.ID) })
	change(a, "move", http.MethodPost, one+"/move", "Moves a waiting submission.",
		func(in *moveInput) error { return s.Queue.Move(in.ID, in.Body.By) })
	change(a, "removeSubmission", http.MethodDelete, one, "Forgets a submission that has ended. Its results stay.",
		func(in *submissionInput) error { return s.Queue.Remove(in.ID) })
	change(a, "pause", http.MethodPut, "/api/v1/queue", "Pauses the queue, or continues it. What runs is not affected.",
		func(in *pauseInput) error { return s.Queue.Pause(in.Body.Paused) })
}

// change registers a request without an answer.
func change[I any](a huma.API, name, method, path, description string, do func(*I) error) {
	huma.Register(a, huma.Operation{OperationID: name, Method: method, Path: path, Description: description,
		DefaultStatus: http.StatusNoContent},
		func(_ context.Context, in *I) (*struct{}, error) { return nil, problem(do(in)) })
}

func (s *Server) submissions(context.Context, *struct{}) (*body[Queue], error) {
	q := Queue{AllowRun: s.Queue != nil, Dir: s.Dir, Submissions: []Submission{}}
	if s.Queue == nil {
		return &body[Queue]{q}, nil
	}
	all, paused := s.Queue.List()
	q.Paused = paused
	for _, sub := range all {
		q.Submissions = append(q.Submissions, s.describe(sub))
	}
	return &body[Queue]{q}, nil
}

func (s *Server) describe(sub queue.Submission) Submission {
	file := runFile
	if sub.Study {
		file = studyFile
	}
	one := Submission{Submission: sub, Begun: sub.Out != "" && s.has(path.Join(sub.Out, file))}
	if one.Begun && sub.State == queue.Running {
		one.Hosts = s.hosts(&sub)
	}
	return one
}

func (s *Server) described(sub queue.Submission, err error) (*body[Submission], error) {
	return &body[Submission]{s.describe(sub)}, problem(err)
}

// submit appends a file to the queue if it is valid.
func (s *Server) submit(ctx context.Context, in *submitInput) (*body[Submission], error) {
	c, err := s.check(ctx, in.Body.Draft)
	if err != nil {
		return nil, err
	}
	if !c.Valid {
		var all []error
		for _, p := range c.Problems {
			all = append(all, &huma.ErrorDetail{Message: p.String(), Location: p.Path})
		}
		return nil, huma.Error422UnprocessableEntity("the file is not valid", all...)
	}
	sub, err := s.Queue.Submit(queue.Submission{Name: cmp.Or(in.Body.Name, c.Name), Engine: in.Body.Engine,
		Namespace: in.Body.Namespace, Study: c.Study, Text: in.Body.Text})
	return s.described(sub, err)
}

// hosts returns those of the run in progress of a submission.
func (s *Server) hosts(sub *queue.Submission) []Host {
	id := sub.Out
	if sub.Study {
		id = s.newestRun(sub.Out)
	}
	dir, err := s.place(id, runFile)
	if err != nil {
		return nil
	}
	if b, err := bundle.Look(dir); err != nil || !b.Live {
		return nil
	}
	h, err := s.hubs.join(dir)
	if err != nil {
		return nil
	}
	defer h.leave()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live.hosts()
}

// newestRun returns the run of a study that was written to last: its runs are made one after another.
func (s *Server) newestRun(study string) (id string) {
	entries, err := fs.ReadDir(s.root.FS(), study)
	if err != nil {
		return ""
	}
	var newest time.Time
	for _, e := range entries {
		at := path.Join(study, e.Name())
		if info, err := e.Info(); err == nil && e.IsDir() && info.ModTime().After(newest) && s.has(path.Join(at, runFile)) {
			id, newest = at, info.ModTime()
		}
	}
	return id
}
