package watch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
)

// maxFrame bounds what one frame may take. etcd refuses objects of more than a
// few MiB, so that a longer one is not a frame but a stream out of step.
const maxFrame = 32 << 20

// readFrame returns the next frame whole, in memory of its own. At the end of
// the stream it is io.EOF, inside a frame io.ErrUnexpectedEOF.
func readFrame(k api.Kind, r *bufio.Reader) ([]byte, error) {
	if k.JSON {
		return readLine(r)
	}
	return readDelimited(r)
}

// readDelimited reads what apimachinery's framer writes for protobuf: a length
// of 4 bytes, big-endian, and so many bytes.
func readDelimited(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return nil, fmt.Errorf("a frame claims %d bytes, at most %d are possible", n, maxFrame)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r, frame); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return frame, nil
}

// readLine reads one JSON document; the server ends each with a newline and has
// none inside.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxFrame {
			return nil, fmt.Errorf("a frame is longer than %d bytes", maxFrame)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		default: // an empty line
			line = line[:0]
		}
	}
}

// decodeFrame reads a frame's event. An ERROR event is an error, of apimachinery's
// api/errors.
func decodeFrame(k api.Kind, frame []byte) (Type, api.Object, error) {
	typ, raw, err := openFrame(k, frame)
	if err != nil {
		return "", nil, fmt.Errorf("watch of %s: malformed frame: %w", k, err)
	}
	switch t := Type(typ); t {
	case Added, Modified, Deleted, Bookmark:
		obj := k.New()
		if err := k.Decode(raw, obj); err != nil {
			return "", nil, fmt.Errorf("watch of %s: %s: %w", k, typ, err)
		}
		if obj.GetResourceVersion() == "" {
			return "", nil, fmt.Errorf("watch of %s: %s %q has no resourceVersion", k, typ, obj.GetName())
		}
		return t, obj, nil
	case "ERROR":
		return "", nil, fmt.Errorf("watch of %s: the server ended it: %w", k, api.StatusError(raw))
	default:
		return "", nil, fmt.Errorf("watch of %s: malformed frame: event type %.20q", k, typ)
	}
}

func openFrame(k api.Kind, frame []byte) (typ string, object []byte, err error) {
	if !k.JSON {
		var e metav1.WatchEvent // not enveloped, unlike the object in it
		err = e.Unmarshal(frame)
		return e.Type, e.Object.Raw, err
	}
	var e struct {
		Type   string
		Object json.RawMessage
	}
	err = json.Unmarshal(frame, &e)
	return e.Type, e.Object, err
}
