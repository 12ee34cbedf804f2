package bundle

import (
	"encoding/binary"
	"errors"

	"github.com/cnsbench/cnsbench/internal/op"
)

// appendCanary encodes a batch: two strings (uvarint length, bytes), the uvarint count, and for each I/O the
// varints intended − previous intended, started − intended, ended − started, and the uvarint errno·2 +
// write. Differences wrap around, so that Never is preserved.
func appendCanary(b []byte, instance, volume string, ios []op.CanaryIO) []byte {
	b = appendText(b, instance)
	b = appendText(b, volume)
	b = binary.AppendUvarint(b, uint64(len(ios)))
	var last op.Time
	for _, io := range ios {
		b = binary.AppendVarint(b, int64(io.Intended-last))
		b = binary.AppendVarint(b, int64(io.Started-io.Intended))
		b = binary.AppendVarint(b, int64(io.Ended-io.Started))
		flags := uint64(io.Errno) << 1
		if io.Write {
			flags |= 1
		}
		b = binary.AppendUvarint(b, flags)
		last = io.Intended
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errCanary = errors.New("canary batch does not decode")

// canaryDecoder decodes the output of calls of appendCanary. The zero value is ready to use; it is not safe for
// concurrent use.
type canaryDecoder struct {
	batches []CanaryBatch
	ios     []op.CanaryIO // of all batches
	names   interned
}

// decode returns the batches of one or more calls, valid until the next call of decode.
func (c *canaryDecoder) decode(b []byte) ([]CanaryBatch, error) {
	d := varints{b: b}
	batches, ios := c.batches[:0], c.ios[:0]
	for len(d.b) > 0 {
		batch := CanaryBatch{Instance: c.names.of(d.bytes()), Volume: c.names.of(d.bytes())}
		n := d.uvarint()
		if n > uint64(len(d.b))/4 { // an I/O has at least four bytes
			return nil, errCanary
		}
		if n > uint64(cap(ios)-len(ios)) {
			ios = make([]op.CanaryIO, 0, max(n, 1024)) // the batches before keep theirs
		}
		from := len(ios)
		ios = ios[:from+int(n)]
		batch.IOs = ios[from:len(ios):len(ios)]
		var last op.Time
		for i := range batch.IOs {
			io := &batch.IOs[i]
			io.Intended = last + op.Time(d.varint())
			io.Started = io.Intended + op.Time(d.varint())
			io.Ended = io.Started + op.Time(d.varint())
			flags := d.uvarint()
			io.Write, io.Errno = flags&1 == 1, int32(flags>>1)
			last = io.Intended
		}
		if d.bad {
			return nil, errCanary
		}
		batches = append(batches, batch)
	}
	c.batches, c.ios = batches, ios
	return batches, nil
}

// varints decodes a buffer; after a failure it returns zeros and sets bad.
type varints struct {
	b   []byte
	bad bool
}

func (d *varints) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	return v
}

func (d *varints) varint() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

func (d *varints) skip(n int) {
	if n <= 0 {
		d.bad, d.b = true, nil
		return
	}
	d.b = d.b[n:]
}

// bytes returns what appendText appended, in the memory of the buffer.
func (d *varints) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	text := d.b[:n]
	d.b = d.b[n:]
	return text
}
