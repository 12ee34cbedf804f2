package output

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Account has the keys of an account of S3; the zero value is anonymous.
type Account = s3.Credentials

// Bucket is a bucket of an S3 endpoint that bundles are put into.
type Bucket struct {
	Name     string // of the output
	Bucket   string
	Prefix   string            // of the keys, without a slash at its end
	Settings map[string]string // endpoint, region, path_style_access, cafile; see s3.Config
	Account  Account           // not recorded
}

// Check checks the settings; nothing is sent.
func (t *Bucket) Check() error {
	_, err := t.open()
	return err
}

// open returns the store. Requests have the hash of what they put, which the store compares.
func (t *Bucket) open() (*s3.Store, error) {
	settings := map[string]string{"payload": "signed"}
	maps.Copy(settings, t.Settings)
	return s3.New(s3.Config{Settings: settings, Credentials: t.Account, Clock: op.NewClock()})
}

// Upload puts each file of a bundle into the bucket as the object PREFIX/BENCHMARK-RUN/FILE, and the manifest last:
// where it is, the bundle is whole. Failures are retried until ctx ends; a refusal ends the upload. Repeating it
// replaces the objects. The counts are files.
func (t *Bucket) Upload(ctx context.Context, b *bundle.Bundle, o Options) bundle.OutputStats {
	u := upload{Options: o.orDefault(), bucket: t, dir: b.Dir, prefix: path.Join(t.Prefix, b.Run.Name+"-"+b.Run.ID),
		stats: bundle.OutputStats{Name: t.Name}}
	files, err := b.Files()
	if err == nil {
		u.store, err = t.open()
	}
	if err == nil {
		err = u.all(ctx, files)
	}
	u.stats.Pending = int64(len(files)) - u.stats.Delivered - u.stats.Refused
	if err != nil {
		u.stats.Error = err.Error()
	}
	return u.stats
}

// upload is a bundle on its way.
type upload struct {
	Options
	bucket      *Bucket
	store       *s3.Store
	dir, prefix string

	mu    sync.Mutex
	stats bundle.OutputStats
}

// all puts files, the last of them after the others.
func (u *upload) all(ctx context.Context, files []string) error {
	last := len(files) - 1
	if last < 0 {
		return errors.New("the bundle has no files")
	}
	work := make(chan string, last)
	for _, file := range files[:last] {
		work <- file
	}
	close(work)
	group, both := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error { return u.each(both, work) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	work = make(chan string, 1)
	work <- files[last]
	close(work)
	return u.each(ctx, work)
}

// each puts files over one connection.
func (u *upload) each(ctx context.Context, work <-chan string) error {
	c, err := u.store.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, c.Abort)()
	for file := range work {
		if err := u.put(ctx, c, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// put puts one file, until it is there, is refused, or ctx ends.
func (u *upload) put(ctx context.Context, c client.Client, file string) error {
	var before error
	for attempt := 0; ; attempt++ {
		err := u.attempt(ctx, c, file)
		if err != nil && before != nil && isOver(ctx) {
			return before // this attempt was cut short
		}
		before = err
		var refused *refusedError
		isRefused := errors.As(err, &refused)
		u.mu.Lock()
		switch {
		case err == nil:
			u.stats.Delivered++
		case isRefused:
			u.stats.Refused++
		default:
			u.stats.Retried++
		}
		u.mu.Unlock()
		if err == nil || isRefused {
			return err
		}
		wait := min(u.Patience, u.Backoff<<min(attempt, 16))
		select {
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		case <-ctx.Done():
			return err
		}
	}
}

// isOver reports whether ctx has ended. A dialer can see its deadline before that.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// attempt puts one file once.
func (u *upload) attempt(ctx context.Context, c client.Client, file string) error {
	f, err := bounded.Dir(u.dir).Open(file)
	if err != nil {
		return &refusedError{err.Error()}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return &refusedError{err.Error()}
	}
	var res client.Result
	c.Do(ctx, &client.Request{Verb: client.Put, Container: []byte(u.bucket.Bucket),
		Object: []byte(u.prefix + "/" + file), Size: info.Size(), File: content{f}}, &res)
	message := fmt.Sprintf("%s: %s", res.Label(), brief([]byte(res.Detail)))
	switch {
	case res.OK():
		return nil
	case res.Failure == httpconn.LocalFailed, res.Failure == "" && !isTransient(res.Status):
		return &refusedError{message}
	}
	return errors.New(message)
}

// content is a file as the body of a request.
type content struct{ *os.File }

// Read implements httpconn.Content.
func (c content) Read(dst []byte, offset int64) error {
	_, err := c.ReadAt(dst, offset)
	return err
}
