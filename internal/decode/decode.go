// Package decode makes plain text of files that people hand in: it decompresses, converts to UTF-8, and removes what a
// log collector puts before each line. All readers of foreign files begin with it.
package decode

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// maxMemory limits the window of a file of zstd.
const maxMemory = 256 << 20

// What a compressed file may yield: MaxYield bytes or those of Sized, or mostRatio times the bytes read of it, whichever
// is more. Logs and tables compress to a tenth or a thirtieth; what yields more was made to fill memory.
const (
	MaxYield  = 64 << 20
	mostRatio = 100
)

// Flag is the name of the flag for Sized.MaxYield.
const Flag = "max-size"

// Sized is a file whose user chose what it may yield by Flag.
type Sized struct {
	io.Reader
	MaxYield int64 // bytes; 0: those of every file
}

func (s Sized) maxYield() int64 { return s.MaxYield }

// Tee is io.TeeReader, and keeps the choice of Sized.
func Tee(from io.Reader, to io.Writer) io.Reader {
	tee := io.TeeReader(from, to)
	if s, ok := from.(interface{ maxYield() int64 }); ok {
		return Sized{tee, s.maxYield()}
	}
	return tee
}

// ErrTooLarge is the error of a file whose decompressed text is longer than its limit.
var ErrTooLarge = errors.New("too large")

// The first bytes of compressed files.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// NewReader returns the text of a file: decompressed if it is of gzip or zstd, in UTF-8 if it begins with the mark of
// UTF-8 or UTF-16, without the mark. Reading more than most bytes of text gives ErrTooLarge, and so does a compressed
// file that yields more than MaxYield, or that of Sized, and 100 times its size. Close ends the decompression; it does
// not close from.
func NewReader(from io.Reader, most int64) (io.ReadCloser, error) {
	read := &counter{from: from}
	buffered := bufio.NewReaderSize(read, 1<<16)
	magic, _ := buffered.Peek(len(zstdMagic))
	r := &reader{left: most, most: most, close: func() error { return nil }}
	plain := io.Reader(buffered)
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		plain, r.close, r.kind = z, z.Close, "gzip"
	case bytes.HasPrefix(magic, zstdMagic):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderMaxMemory(maxMemory), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		plain, r.close, r.kind = z, func() error { z.Close(); return nil }, "zstd"
	}
	if r.kind != "" {
		y := &yield{from: plain, of: read, most: MaxYield,
			hint: "if that is right, decompress it with " + r.kind + " -d first"}
		if s, ok := from.(interface{ maxYield() int64 }); ok {
			y.most, y.hint = cmp.Or(s.maxYield(), y.most), "if that is right, give --"+Flag+" SIZE"
		}
		plain = y
	}
	r.from = transform.NewReader(plain, unicode.BOMOverride(encoding.Nop.NewDecoder()))
	return r, nil
}

// counter counts what is read.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// yield limits what is decompressed by the size of what it is decompressed of.
type yield struct {
	from io.Reader
	of   *counter
	most int64  // bytes
	hint string // what to do beyond
	n    int64
}

func (y *yield) Read(p []byte) (int, error) {
	n, err := y.from.Read(p)
	if y.n += int64(n); y.n > max(y.most, mostRatio*y.of.n) {
		return 0, fmt.Errorf("it yields more than %d MiB and %d times its size: %s: %w", y.most>>20, mostRatio, y.hint,
			ErrTooLarge)
	}
	return n, err
}

// reader limits the text, and names the compression in its errors.
type reader struct {
	from       io.Reader
	left, most int64
	kind       string
	close      func() error
}

func (r *reader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		var one [1]byte
		n, err := r.from.Read(one[:])
		if n > 0 {
			return 0, fmt.Errorf("more than %d MiB of text: %w", r.most>>20, ErrTooLarge)
		}
		return 0, r.named(err)
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, r.named(err)
}

func (r *reader) named(err error) error {
	switch {
	case err == nil || errors.Is(err, io.EOF) || r.kind == "":
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the file of %s is cut off: %w", r.kind, err)
	}
	return fmt.Errorf("%s: %w", r.kind, err)
}

func (r *reader) Close() error { return r.close() }

// chunkSize is how many bytes Text reads at a time.
const chunkSize = 256 << 10

// Text reads all of a file's text, at most a number of bytes.
func Text(from io.Reader, most int64) (string, error) {
	r, err := NewReader(from, most)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var chunks [][]byte // one buffer that grows is copied again and again, and takes several times the text
	size := 0
	for err == nil {
		var chunk bytes.Buffer
		chunk.Grow(chunkSize + bytes.MinRead)
		_, err = io.CopyN(&chunk, r, chunkSize)
		chunks, size = append(chunks, chunk.Bytes()), size+chunk.Len()
	}
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	var text strings.Builder
	text.Grow(size)
	for _, c := range chunks {
		text.Write(c)
	}
	return text.String(), nil
}
