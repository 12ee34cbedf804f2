package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"path"
)

// remoteWriteFile has the requests of an output: in each frame one or more of them, each after its length as a uvarint.
func remoteWriteFile(output string) string { return path.Join(remoteWriteDir, output+framesSuffix) }

var errRemoteWrite = errors.New("requests of remote write do not decode")

// RemoteWrite records the body of a request of remote write for an output; it does not keep body.
func (w *Writer) RemoteWrite(output string, body []byte) {
	w.enqueue(remoteWriteFile(output), true, appendText(nil, string(body)), "")
}

// RemoteWrites yields the bodies of the requests for an output in order.
func (b *Bundle) RemoteWrites(output string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		file := remoteWriteFile(output)
		for payload, err := range frames(b.dir(), file, b.streamLimit(file)) {
			if err != nil {
				yield(nil, err)
				return
			}
			bodies, err := decodeRemoteWrites(payload)
			if err != nil {
				yield(nil, fmt.Errorf("bundle: %s is %w: %w", b.path(file), ErrDamaged, err))
				return
			}
			for _, body := range bodies {
				if !yield(body, nil) {
					return
				}
			}
		}
	}
}

// decodeRemoteWrites decodes a frame.
func decodeRemoteWrites(b []byte) (bodies [][]byte, err error) {
	for d := (varints{b: b}); len(d.b) > 0; {
		body := d.bytes()
		if d.bad || len(body) == 0 {
			return nil, errRemoteWrite
		}
		bodies = append(bodies, bytes.Clone(body))
	}
	return bodies, nil
}
