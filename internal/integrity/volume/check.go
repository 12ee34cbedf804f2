package volume

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/integrity"
)

// Check reads the blocks at path, a directory on the volume or its device, and judges them. If no block
// of any stream is whole, the report has no checked blocks.
func Check(ctx context.Context, path string) (report *integrity.Report, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	f, err := open(path, os.O_RDONLY, true)
	if isAbsent(err) {
		return &integrity.Report{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s, found, err := f.find(ctx)
	if err != nil || !found {
		return &integrity.Report{}, err
	}
	return f.judge(ctx, s, 0)
}

// find returns the stream of the first whole block.
func (f *file) find(ctx context.Context) (s integrity.Stream, found bool, err error) {
	b := buffer(chunk)
	for at := int64(0); ctx.Err() == nil; at += chunk {
		err := f.readChunk(b, at)
		if errors.Is(err, io.EOF) {
			return s, false, nil
		}
		if err != nil {
			return s, false, err
		}
		for k := 0; k < chunk; k += integrity.Unit {
			if s, _, err := integrity.StreamOf(b[k:]); err == nil {
				return s, true, nil
			}
		}
	}
	return s, false, ctx.Err()
}

// judgeAt is judge with a handle of its own, which reads what the device has and not the page cache.
func judgeAt(ctx context.Context, path string, s integrity.Stream, known int64) (r *integrity.Report, err error) {
	f, err := open(path, os.O_RDONLY, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.judge(ctx, s, known)
}

// judge reads all blocks of a stream. Writes up to known must be there.
func (f *file) judge(ctx context.Context, s integrity.Stream, known int64) (*integrity.Report, error) {
	image := make([]integrity.Block, s.Blocks)
	b := buffer(chunk)
	for i := range image {
		at := int64(i) * int64(s.BlockSize)
		if at%chunk == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := f.readChunk(b, at); err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
		}
		k := int(at % chunk)
		image[i] = s.Decode(b[k:k+s.BlockSize], int64(i))
	}
	return integrity.Judge(s, image, known), nil
}
