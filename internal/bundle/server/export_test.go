package server

import (
	"bytes"
	"context"
	"errors"
)

// Abandon stops copying and leaves the copy as it is.
func (p *Push) Abandon() error {
	p.cancel()
	close(p.stop)
	if err := <-p.done; err != nil && !errors.Is(err, context.Canceled) {
		return errors.Join(err, p.from.Close())
	}
	return p.from.Close()
}

// Append is Folder.Append for a run; its first file creates it.
func (s *Store) Append(_ context.Context, namespace, id, name string, offset int64, b []byte) (int64, error) {
	return s.AppendFrom(namespace, id, name, offset, bytes.NewReader(b), int64(len(b)))
}
