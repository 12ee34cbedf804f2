package client

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Step is one request of an operation that takes several.
type Step string

// The steps of an operation in parts.
const (
	Create   Step = "create"   // begin the upload
	Part     Step = "part"     // send, or copy, a part
	Complete Step = "complete" // make the parts one object
	Abandon  Step = "abort"    // drop the upload with its parts
	Page     Step = "page"     // one page of a listing
)

// Step executes one request of r: do fills a result of its own, which r.Steps observes and which is added to res.
func (r *Request) Step(s Step, res *Result, do func(one *Result) bool) bool {
	one := Result{Started: op.Never, First: op.Never}
	ok := do(&one)
	r.observe(s, &one)
	res.add(&one)
	return ok
}

func (r *Request) observe(s Step, one *Result) {
	if r.Steps != nil {
		r.Steps(s, one)
	}
}

// add makes res the result of an operation whose last request was one.
func (r *Result) add(one *Result) {
	before := *r
	*r = *one
	if before.Started.Known() {
		r.Started = before.Started
	}
	r.Bytes = 0 // those of the operation count when it is complete
	r.Attempts += before.Attempts
	r.Connect += before.Connect
	r.Connected = r.Connected || before.Connected
}

// ListPages lists page by page until there are no more, if r asks for all pages; else one page. list requests one.
func (r *Request) ListPages(res *Result, list func(q *Request, one *Result) bool) {
	if r.Options == nil || !r.Options.AllPages {
		list(r, res)
		return
	}
	q, all := *r, Result{}
	for {
		ok := r.Step(Page, res, func(one *Result) bool { return list(&q, one) })
		all.Keys, all.Names, all.Listed = all.Keys+res.Keys, append(all.Names, res.Names...), all.Listed || res.Listed
		if q.Page = res.Next; !ok || q.Page == "" {
			res.Keys, res.Names, res.Listed = all.Keys, all.Names, all.Listed
			return
		}
	}
}

// NotOffered fills res for an operation that the kind of storage does not have.
func (r *Result) NotOffered(what string, now op.Time) {
	*r = Result{Status: 501, Code: NotOffered, Detail: what + " is not offered by this kind of storage",
		Started: now, First: op.Never, Ended: now}
}

// PartCount is the number of parts of an object: at least one.
func (r *Request) PartCount() int { return max(1, int((r.Size+r.PartSize-1)/r.PartSize)) }

// PartRange is the place of a part, from 1, in the object.
func (r *Request) PartRange(part int) (offset, size int64) {
	offset = int64(part-1) * r.PartSize
	return offset, min(r.PartSize, r.Size-offset)
}

// Lanes are the connections of a client that sends parts of an object at the same time: the client's own and further
// ones, which stay open until Close. The zero value has no further ones. Only Abort may be called concurrently.
type Lanes struct {
	mu      sync.Mutex // guards further and aborted against Abort
	further []Client
	aborted bool
}

// Open returns the connections for the parts of r, own among them. open makes a further one.
func (l *Lanes) Open(r *Request, own Client, open func() (Client, error)) ([]Client, error) {
	n := min(max(1, r.PartConcurrency), r.PartCount())
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.further) < n-1 {
		c, err := open()
		if err != nil {
			return nil, err
		}
		if l.aborted {
			c.Abort()
		}
		l.further = append(l.further, c)
	}
	return append([]Client{own}, l.further[:n-1]...), nil
}

// Abort aborts the further connections, and those that are opened later.
func (l *Lanes) Abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aborted = true
	for _, c := range l.further {
		c.Abort()
	}
}

// Close closes the further connections.
func (l *Lanes) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.further {
		c.Close()
	}
	l.further = nil
}

// SendParts sends all parts of r, in their order, as many at the same time as there are lanes. send sends one part by
// one lane; lanes call it concurrently. After a failure no part is started; those in flight end, and res becomes the
// result of the part that failed first. It reports whether all parts were sent.
func SendParts(lanes []Client, r *Request, res *Result, send func(lane Client, part int, one *Result) bool) bool {
	var (
		mu     sync.Mutex
		wait   sync.WaitGroup
		next   int
		failed *Result
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil || next == r.PartCount() {
			return 0, false
		}
		next++
		return next, true
	}
	run := func(lane Client, own bool) {
		for part, more := take(); more; part, more = take() {
			one := &Result{Started: op.Never, First: op.Never}
			ok := send(lane, part, one)
			r.observe(Part, one)
			if !own { // only its own connections are in the time of the operation
				one.Connect = 0
			}
			mu.Lock()
			if !ok && failed == nil {
				failed = one
			} else {
				res.Attempts += one.Attempts
				res.Connect += one.Connect
				res.Connected = res.Connected || one.Connected
				if one.Started.Known() && !res.Started.Known() {
					res.Started = one.Started
				}
			}
			mu.Unlock()
		}
	}
	for _, lane := range lanes[1:] {
		wait.Go(func() { run(lane, false) })
	}
	run(lanes[0], true)
	wait.Wait()
	if failed != nil {
		res.add(failed)
	}
	return failed == nil
}
