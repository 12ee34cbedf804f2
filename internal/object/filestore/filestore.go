// Package filestore keeps objects as files: a container is a directory below
// the root, an object a file in it. It shows what a file system makes of an
// object workload, beside a server on the same disk.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Store is a directory.
type Store struct {
	root  string
	sync  bool
	clock op.Clock
}

// New checks the settings root, an existing directory, and sync (none, or
// data: each file is synced before its write ends).
func New(settings map[string]string, clock op.Clock) (*Store, error) {
	root := settings["root"]
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("storage file: root: %w: create the directory on the storage to measure", err)
	case err != nil:
		return nil, fmt.Errorf("storage file: root: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("storage file: root %s is not a directory", root)
	}
	switch settings["sync"] {
	case "", "none", "data":
	default:
		return nil, fmt.Errorf("storage file: invalid sync=%s: want none or data", settings["sync"])
	}
	return &Store{root: root, sync: settings["sync"] == "data", clock: clock}, nil
}

// Describe names the directory.
func (s *Store) Describe() string { return "file " + s.root }

// Client of one worker.
func (s *Store) Client() (client.Client, error) {
	return &adapter{store: s, buf: make([]byte, bufferSize)}, nil
}

const (
	bufferSize = 256 << 10
	copied     = 64 << 20 // at once, by the system
)

type adapter struct {
	store   *Store
	buf     []byte
	checker payload.Checker
	aborted atomic.Bool
}

func (c *adapter) Abort() { c.aborted.Store(true) }

func (c *adapter) Close() {}

// ended is an error after Abort.
func (c *adapter) ended() error {
	if c.aborted.Load() {
		return context.Canceled
	}
	return nil
}

// Do executes r; errors of the system become a status like HTTP's.
func (c *adapter) Do(_ context.Context, r *client.Request, res *client.Result) {
	*res = client.Result{Started: c.store.clock.Now(), First: op.Never, Attempts: 1}
	if c.aborted.Load() {
		res.Failure, res.Ended = httpconn.Aborted, res.Started
		return
	}
	status, err := c.execute(r, res)
	res.Ended = c.store.clock.Now()
	if res.First.Known() {
		res.Drain = int64(res.Ended - res.First)
	}
	if res.Status = status; err != nil {
		res.Status, res.Code = statusOf(err)
		res.Detail = err.Error()
		switch {
		case errors.Is(err, context.Canceled):
			res.Failure = httpconn.Aborted
		case res.Status == 0:
			res.Failure = httpconn.LocalFailed
		}
	}
}

// refused is an error of our own making.
type refused struct {
	status int
	code   string
	text   string
}

func (r *refused) Error() string { return r.text }

func statusOf(err error) (int, string) {
	var own *refused
	switch {
	case errors.As(err, &own):
		return own.status, own.code
	case errors.Is(err, fs.ErrNotExist):
		return 404, "ENOENT"
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTEMPTY):
		return 409, "ENOTEMPTY"
	case errors.Is(err, fs.ErrPermission):
		return 403, "EACCES"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return 507, "ENOSPC"
	}
	return 0, ""
}

// offered reports whether files have the operation with its options.
func offered(r *client.Request) bool {
	o := r.Options
	return r.Verb != client.Call && len(r.Offsets) == 0 && (o == nil || o.StorageClass == "" && o.Encryption == "" &&
		o.Checksum == "" && !o.Versioning && !o.ObjectLock && !o.IfNoneMatch)
}

func (c *adapter) execute(r *client.Request, res *client.Result) (int, error) {
	if !offered(r) {
		return 0, &refused{501, client.NotOffered, "files have no such operation or option"}
	}
	dir, err := c.path(string(r.Container))
	if err != nil {
		return 0, err
	}
	switch r.Verb {
	case client.MakeContainer:
		return c.makeContainer(dir, res)
	case client.RemoveContainer:
		return 204, removeContainer(dir)
	case client.CheckOwner:
		return 200, checkOwner(dir)
	case client.ListUploads: // a write that did not end leaves none
		_, err := os.Stat(dir)
		return 200, err
	case client.List:
		var failed error
		r.ListPages(res, func(q *client.Request, one *client.Result) bool {
			failed = c.list(dir, q, one)
			one.Started, one.Ended, one.Status = res.Started, c.store.clock.Now(), 200
			return failed == nil
		})
		return 200, failed
	}
	file, err := c.path(string(r.Container), string(r.Object))
	if err != nil {
		return 0, err
	}
	switch r.Verb {
	case client.Get:
		return 200, c.get(file, r, res)
	case client.Put, client.PutParts:
		if r.Abandon {
			return 204, nil
		}
		return 201, c.put(file, r, res)
	case client.Head:
		_, err := os.Stat(file)
		return 200, err
	case client.Delete:
		return 204, os.Remove(file)
	case client.Copy:
		to, err := c.path(string(r.Container), string(r.To))
		if err == nil {
			err = c.copy(file, to, res)
		}
		return 201, err
	}
	return 0, fmt.Errorf("invalid verb %d", r.Verb)
}

// path of a container or an object, which must not lead out of its place.
func (c *adapter) path(parts ...string) (string, error) {
	for _, p := range parts {
		if p == "" || p == "." || p == ".." || strings.ContainsAny(p, "/\x00") {
			return "", &refused{400, "BadName", fmt.Sprintf("invalid file name %q", p)}
		}
	}
	return filepath.Join(append([]string{c.store.root}, parts...)...), nil
}

func (c *adapter) makeContainer(dir string, res *client.Result) (int, error) {
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		res.Code = client.Existed
		return 200, nil
	} else if err != nil {
		return 0, err
	}
	return 201, os.WriteFile(filepath.Join(dir, client.Marker), []byte(client.Mark), 0o644)
}

func checkOwner(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, client.Marker))
	if errors.Is(err, fs.ErrNotExist) {
		if _, absent := os.Stat(dir); absent != nil {
			return absent
		}
	} else if err != nil {
		return err
	}
	if !strings.HasPrefix(string(b), client.Mark) {
		return &refused{404, client.NotOurs, dir + " does not carry our mark"}
	}
	return nil
}

// removeContainer takes the mark away only when nothing else is left.
func removeContainer(dir string) error {
	if err := checkOwner(dir); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(2)
	_ = d.Close()
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return fmt.Errorf("%s still has objects beside our mark: %w", dir, syscall.ENOTEMPTY)
	}
	mark := filepath.Join(dir, client.Marker)
	if err := os.Remove(mark); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil {
		return errors.Join(err, os.WriteFile(mark, []byte(client.Mark), 0o644))
	}
	return nil
}

func (c *adapter) list(dir string, r *client.Request, res *client.Result) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	prefix, last := string(r.Object), r.Page
	for _, e := range entries {
		name := e.Name()
		res.Listed = res.Listed || name == prefix
		if !strings.HasPrefix(name, prefix) || name <= r.Page {
			continue
		}
		if o := r.Options; o != nil && o.Delimiter != "" {
			head, _, cut := strings.Cut(name[len(prefix):], o.Delimiter)
			if cut {
				name = prefix + head + o.Delimiter // a common prefix counts as a key
			}
			if name == last {
				continue
			}
		}
		if res.Keys == r.MaxKeys {
			res.Next = last
			return nil
		}
		if last, res.Keys = name, res.Keys+1; r.Names {
			res.Names = append(res.Names, name)
		}
	}
	return nil
}

func (c *adapter) get(file string, r *client.Request, res *client.Result) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	from, left := int64(0), int64(1)<<62
	if r.Length >= 0 {
		from, left = r.Offset, r.Length
	}
	if r.Verify {
		c.checker.Begin(payload.Key(r.Container, r.Object), from, r.Length, r.Zero)
	}
	for left > 0 {
		if err := c.ended(); err != nil {
			return err
		}
		n, err := f.ReadAt(c.buf[:min(int64(len(c.buf)), left)], from)
		if !res.First.Known() {
			res.First = c.store.clock.Now()
		}
		if r.Verify {
			c.checker.Write(c.buf[:n])
		}
		res.Bytes, from, left = res.Bytes+int64(n), from+int64(n), left-int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if r.Verify {
		res.Violation, _ = c.checker.End()
		res.Writer = c.checker.Writer()
	}
	if res.Violation == payload.Sound && r.Length >= 0 && res.Bytes != r.Length {
		res.Violation = payload.Short
	}
	return nil
}

// put writes to a name of its own first: a reader meets the old object or the
// new one, as with a server.
func (c *adapter) put(file string, r *client.Request, res *client.Result) error {
	content := httpconn.Content(&client.Contents{ID: r.ID()})
	if r.File != nil {
		content = r.File
	}
	return c.replace(file, func(f *os.File) error {
		for at := int64(0); at < r.Size; {
			if err := c.ended(); err != nil {
				return err
			}
			p := c.buf[:min(int64(len(c.buf)), r.Size-at)]
			if err := content.Read(p, at); err != nil {
				return err
			}
			if _, err := f.Write(p); err != nil {
				return err
			}
			at += int64(len(p))
		}
		res.Bytes = r.Size
		return nil
	})
}

func (c *adapter) copy(from, to string, res *client.Result) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return c.replace(to, func(f *os.File) error {
		for {
			if err := c.ended(); err != nil {
				return err
			}
			n, err := io.CopyN(f, src, copied)
			if res.Bytes += n; err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	})
}

func (c *adapter) replace(file string, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".cnsbench-tmp-*")
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil && c.store.sync {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
