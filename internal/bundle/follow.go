package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/op"
)

// followBytes bounds what Next reads of one file.
const followBytes = 8 << 20

// Follower reads what a run appends to its bundle. It is not safe for concurrent use.
type Follower struct {
	dir string
	at  map[string]int64 // the next byte of each file
}

// Follow starts at the beginning of the bundle in dir.
func Follow(dir string) *Follower { return &Follower{dir: dir, at: map[string]int64{}} }

// News are the records of a bundle that Next had not returned before, of each kind in order of arrival.
type News struct {
	Ops     []op.Op
	Samples []op.Sample
	Series  []Series
	Canary  []CanaryBatch
	Log     []LogLine
	Starts  []op.InstanceStart
	Ends    []op.InstanceEnd
}

// Next returns what was written since the call before; More says that a file has further records. A record that is
// being written is returned by a later call. Segments of events are removed when a bundle is closed: open it then.
func (f *Follower) Next() (n News, more bool, err error) {
	b := &Bundle{Dir: f.dir}
	if b.segments, err = listSegments(f.dir); err != nil {
		return n, false, err
	}
	for _, path := range b.segments {
		err = errors.Join(err, f.frames(path, &more, func(payload []byte) (wrong error) {
			yieldOps(path, payload, func(o op.Op, err error) bool {
				if wrong = err; err == nil {
					n.Ops = append(n.Ops, o)
				}
				return err == nil
			})
			return wrong
		}))
	}
	err = errors.Join(err, f.frames(b.path(canaryFile), &more, func(payload []byte) error {
		var d canaryDecoder
		batches, err := d.decode(payload)
		n.Canary = append(n.Canary, batches...)
		return err
	}))
	var instances []instanceLine
	err = errors.Join(err, followLines(f, b.path(samplesFile), &more, &n.Samples),
		followLines(f, b.path(seriesFile), &more, &n.Series), followLines(f, b.path(logFile), &more, &n.Log),
		followLines(f, b.path(instancesFile), &more, &instances))
	for _, l := range instances {
		if l.Start != nil {
			n.Starts = append(n.Starts, *l.Start)
		}
		if l.End != nil {
			n.Ends = append(n.Ends, *l.End)
		}
	}
	return n, more, err
}

// open opens a file at its next byte. It returns nil for a file that does not exist.
func (f *Follower) open(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		_, err = file.Seek(f.at[path], io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return file, nil
}

// frames passes the new frames of a file on.
func (f *Follower) frames(path string, more *bool, use func([]byte) error) error {
	file, err := f.open(path)
	if file == nil {
		return err
	}
	defer file.Close()
	r := newFrameReader(file)
	for r.ValidLen < followBytes {
		payload, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) { // a torn frame is being written
			f.at[path] += r.ValidLen
			return nil
		}
		if err == nil {
			err = use(payload)
		}
		if err != nil {
			return fmt.Errorf("bundle: follow %s: %w", path, err)
		}
	}
	f.at[path] += r.ValidLen
	*more = true
	return nil
}

// followLines decodes the new whole lines of a file.
func followLines[T any](f *Follower, path string, more *bool, into *[]T) error {
	file, err := f.open(path)
	if file == nil {
		return err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, followBytes))
	if err != nil {
		return fmt.Errorf("bundle: follow %s: %w", path, err)
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	if len(b) == followBytes {
		if whole == 0 {
			return fmt.Errorf("bundle: follow %s: a line of more than %d bytes", path, followBytes)
		}
		*more = true
	}
	for line := range bytes.Lines(b[:whole]) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("bundle: %s is %w: %w", path, ErrDamaged, err)
		}
		*into = append(*into, v)
	}
	f.at[path] += int64(whole)
	return nil
}
