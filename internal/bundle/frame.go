package bundle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A frame is [length uint32][crc32c of the payload uint32][payload], both little-endian. It makes a torn tail
// detectable.
const (
	frameHeader = 8
	// frameLimit rejects lengths that no writer produces.
	frameLimit = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn is returned if a file ends within a frame or has an incompletely written one.
var errTorn = errors.New("torn or damaged frame")

// sealFrame sets the header in the first frameHeader bytes of a frame.
func sealFrame(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-frameHeader))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[frameHeader:], castagnoli))
}

// frameReader reads frames; ValidLen is the offset after the last valid one.
type frameReader struct {
	r        *bufio.Reader
	buf      []byte
	ValidLen int64
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 256<<10)}
}

// Next returns the next payload, valid until the next call; io.EOF at a clean end, errTorn if the rest is
// unusable.
func (f *frameReader) Next() ([]byte, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errTorn
		}
		return nil, err
	}
	n := binary.LittleEndian.Uint32(h[:])
	if n == 0 || n > frameLimit {
		return nil, errTorn
	}
	if err := f.fill(int(n)); err != nil {
		return nil, err
	}
	if crc32.Checksum(f.buf, castagnoli) != binary.LittleEndian.Uint32(h[4:]) {
		return nil, errTorn
	}
	f.ValidLen += int64(n) + frameHeader
	return f.buf, nil
}

// fill reads n bytes and grows the buffer only as data arrives, so that a damaged length costs no memory.
func (f *frameReader) fill(n int) error {
	const step = 1 << 20
	f.buf = f.buf[:0]
	for len(f.buf) < n {
		have := len(f.buf)
		want := min(n, have+step)
		if cap(f.buf) < want {
			f.buf = append(make([]byte, 0, max(want, min(n, 2*have))), f.buf...)
		}
		f.buf = f.buf[:want]
		if _, err := io.ReadFull(f.r, f.buf[have:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return errTorn
			}
			return fmt.Errorf("read frame: %w", err)
		}
	}
	return nil
}
