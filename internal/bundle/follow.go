package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/bounded"
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
	for _, name := range b.segments {
		err = errors.Join(err, f.frames(name, &more, func(payload []byte) (wrong error) {
			yieldOps(b.path(name), payload, func(o op.Op, err error) bool {
				if wrong = err; err == nil {
					n.Ops = append(n.Ops, o)
				}
				return err == nil
			})
			return wrong
		}))
	}
	err = errors.Join(err, f.frames(canaryFile, &more, func(payload []byte) error {
		var d canaryDecoder
		batches, err := d.decode(payload)
		n.Canary = append(n.Canary, batches...)
		return err
	}))
	var instances []instanceLine
	err = errors.Join(err, followLines(f, samplesFile, &more, &n.Samples),
		followLines(f, seriesFile, &more, &n.Series), followLines(f, logFile, &more, &n.Log),
		followLines(f, instancesFile, &more, &instances))
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
func (f *Follower) open(name string) (*os.File, error) {
	file, err := bounded.Dir(f.dir).Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		_, err = file.Seek(f.at[name], io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return file, nil
}

// frames passes the new frames of a file on.
func (f *Follower) frames(name string, more *bool, use func([]byte) error) error {
	file, err := f.open(name)
	if file == nil {
		return err
	}
	defer file.Close()
	r := newFrameReader(file)
	for r.ValidLen < followBytes {
		payload, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) { // a torn frame is being written
			f.at[name] += r.ValidLen
			return nil
		}
		if err == nil {
			err = use(payload)
		}
		if err != nil {
			return fmt.Errorf("bundle: follow %s: %w", file.Name(), err)
		}
	}
	f.at[name] += r.ValidLen
	*more = true
	return nil
}

// followLines decodes the new whole lines of a file.
func followLines[T any](f *Follower, name string, more *bool, into *[]T) error {
	file, err := f.open(name)
	if file == nil {
		return err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, followBytes))
	if err != nil {
		return fmt.Errorf("bundle: follow %s: %w", file.Name(), err)
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	if len(b) == followBytes {
		if whole == 0 {
			return fmt.Errorf("bundle: follow %s: a line of more than %d bytes", file.Name(), followBytes)
		}
		*more = true
	}
	for line := range bytes.Lines(b[:whole]) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("bundle: %s is %w: %w", file.Name(), ErrDamaged, err)
		}
		*into = append(*into, v)
	}
	f.at[name] += int64(whole)
	return nil
}
