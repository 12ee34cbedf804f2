package bundle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// streamLimit returns the number of valid bytes of a stream.
func (b *Bundle) streamLimit(name string) int64 {
	if n, ok := b.validLen[name]; ok {
		return n
	}
	return math.MaxInt64
}

// lines yields the JSON lines of a stream; none if it does not exist.
func lines[T any](b *Bundle, rel string) iter.Seq2[T, error] {
	return parsedLines(b, rel, func(line []byte, v *T) error { return json.Unmarshal(line, v) })
}

// parsedLines yields the lines of a stream; none if it does not exist.
func parsedLines[T any](b *Bundle, rel string, parse func(line []byte, into *T) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var v, zero T
		f, err := b.OpenFile(rel)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if err != nil {
			yield(zero, fmt.Errorf("bundle: %w", err))
			return
		}
		defer f.Close()
		for line, err := range splitLines(io.LimitReader(f, b.streamLimit(rel))) {
			v = zero
			if err == nil {
				err = parse(line, &v)
			}
			if err != nil {
				yield(zero, fmt.Errorf("bundle: %s is %w: %w", f.Name(), ErrDamaged, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// maxLine bounds a line of a stream; a day's series at one point per second has 3 MiB.
const maxLine = 64 << 20

// splitLines yields lines with their ends, each valid until the next; the last may have no end.
func splitLines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		br := bufio.NewReaderSize(r, 256<<10)
		var long []byte
		for {
			line, err := br.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = append(long[:0], line...)
				long, err = bounded.AppendLine(long, br, maxLine)
				line = long
			}
			if len(line) > 0 && !yield(line, nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// frames yields the payloads of a framed file up to limit bytes, each valid until the next.
func frames(dir bounded.Dir, name string, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := dir.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if err != nil {
			yield(nil, fmt.Errorf("bundle: %w", err))
			return
		}
		defer f.Close()
		r := newFrameReader(io.LimitReader(f, limit))
		for {
			payload, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("bundle: %s at byte %d: %w", f.Name(), r.ValidLen, err))
				return
			}
			if !yield(payload, nil) {
				return
			}
		}
	}
}

// segmentOps yields the ops of segments, or the fields of T, each segment up to its valid length.
func segmentOps[T any](dir bounded.Dir, segments []string, good map[string]int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for _, name := range segments {
			limit := int64(math.MaxInt64)
			if n, ok := good[name]; ok {
				limit = n
			}
			for payload, err := range frames(dir, name, limit) {
				if err != nil {
					yield(none, err)
					return
				}
				if !yieldOps(dir.Path(name), payload, yield) {
					return
				}
			}
		}
	}
}

func yieldOps[T any](path string, payload []byte, yield func(T, error) bool) bool {
	for line := range bytes.Lines(payload) {
		var o T
		if err := json.Unmarshal(line, &o); err != nil {
			var none T
			yield(none, fmt.Errorf("bundle: %s is %w: %w", path, ErrDamaged, err))
			return false
		}
		if whole, ok := any(&o).(*op.Op); ok && len(whole.Milestones) == 0 {
			whole.Milestones = nil
		}
		if !yield(o, nil) {
			return false
		}
	}
	return true
}

// checkStreams finds the valid length of every stream of an incomplete bundle.
func (b *Bundle) checkStreams() error {
	framed := append([]string{canaryFile}, b.segments...)
	requests, err := b.dir().ReadDir(remoteWriteDir)
	if ignoreMissing(err) != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	for _, e := range requests {
		if strings.HasSuffix(e.Name(), framesSuffix) {
			framed = append(framed, remoteWriteDir+"/"+e.Name())
		}
	}
	for _, name := range framed {
		if err := b.checkStream(name, validFrames); err != nil {
			return err
		}
	}
	for _, rel := range linesFiles {
		if err := b.checkStream(rel, validLines); err != nil {
			return err
		}
	}
	return nil
}

// checkStream finds the valid length of one stream and warns about a torn tail.
func (b *Bundle) checkStream(name string, sound func(io.Reader) (int64, error)) error {
	f, err := b.OpenFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	// A live file may grow: check it at one length.
	good, err := sound(io.LimitReader(f, st.Size()))
	if err != nil {
		return fmt.Errorf("bundle: read %s: %w", f.Name(), err)
	}
	b.validLen[name] = good
	if torn := st.Size() - good; torn > 0 {
		b.warn("%s: a torn tail of %d bytes was dropped", name, torn)
	}
	return nil
}

func validFrames(r io.Reader) (int64, error) {
	f := newFrameReader(r)
	for {
		_, err := f.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errTorn):
			return f.ValidLen, nil
		case err != nil:
			return 0, err
		}
	}
}

func validLines(r io.Reader) (good int64, err error) {
	for line, err := range splitLines(r) {
		if err != nil {
			return 0, err
		}
		if line[len(line)-1] != '\n' || !json.Valid(line) {
			break
		}
		good += int64(len(line))
	}
	return good, nil
}
