package bundle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A frame is [length uint32][crc32c of the payload uint32][payload], both
// little-endian. It makes a torn tail visible.
const (
	frameHeader = 8
	// frameLimit refuses lengths that no writer produces: garbage.
	frameLimit = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn says that a file ends within a frame or holds one that was never
// written in full.
var errTorn = errors.New("torn or damaged frame")

// sealFrame fills in the header of a frame whose first frameHeader bytes were
// left free.
func sealFrame(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-frameHeader))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[frameHeader:], castagnoli))
}

// frameReader reads frames; Good is the offset after the last sound one.
type frameReader struct {
	r    *bufio.Reader
	buf  []byte
	Good int64
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 256<<10)}
}

// Next returns the next payload, valid until the next call; io.EOF at a clean
// end, errTorn where the rest is of no use.
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
	f.Good += int64(n) + frameHeader
	return f.buf, nil
}

// fill reads n bytes, growing the buffer only as data arrives: a damaged
// length must not cost memory.
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
