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

// maxFrame bounds the size of a frame. etcd refuses objects of more than a few MiB: a larger frame means a broken
// stream.
const maxFrame = 32 << 20

// readFrame returns the next frame in a new buffer. The error is io.EOF at the end of the stream, and
// io.ErrUnexpectedEOF inside a frame.
func readFrame(k api.Kind, r *bufio.Reader) ([]byte, error) {
	if k.JSON {
		return readLine(r)
	}
	return readDelimited(r)
}

// readDelimited reads a frame of apimachinery's protobuf framer: a big-endian length of 4 bytes, and the data.
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

// readLine reads one JSON document, which ends with a newline.
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

// decodeFrame decodes an event. An ERROR event becomes an error of api/errors.
func decodeFrame(k api.Kind, frame []byte) (Type, api.Object, error) {
	if k.JSON {
		if typ, obj, ok := k.DecodeEvent(frame); ok && carriesObject(Type(typ)) {
			return checkObject(k, Type(typ), obj)
		} // else the error is found step by step
	}
	typ, raw, err := openFrame(k, frame)
	if err != nil {
		return "", nil, fmt.Errorf("watch of %s: malformed frame: %w", k, err)
	}
	switch t := Type(typ); {
	case carriesObject(t):
		obj := k.New()
		if err := k.Decode(raw, obj); err != nil {
			return "", nil, fmt.Errorf("watch of %s: %s: %w", k, typ, err)
		}
		return checkObject(k, t, obj)
	case typ == "ERROR":
		return "", nil, fmt.Errorf("watch of %s: the server ended it: %w", k, api.StatusError(raw))
	default:
		return "", nil, fmt.Errorf("watch of %s: malformed frame: event type %.20q", k, typ)
	}
}

func carriesObject(t Type) bool { return t == Added || t == Modified || t == Deleted || t == Bookmark }

func checkObject(k api.Kind, t Type, obj api.Object) (Type, api.Object, error) {
	if obj.GetResourceVersion() == "" {
		return "", nil, fmt.Errorf("watch of %s: %s %q has no resourceVersion", k, t, obj.GetName())
	}
	obj.SetManagedFields(nil) // no reader; as large as the rest
	return t, obj, nil
}

func openFrame(k api.Kind, frame []byte) (typ string, object []byte, err error) {
	if !k.JSON {
		var e metav1.WatchEvent // without the envelope that its object has
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
