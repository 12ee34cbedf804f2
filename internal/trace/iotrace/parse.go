package iotrace

import (
	"cmp"
	"errors"
	"io"

	"github.com/cnsbench/cnsbench/internal/decode"
)

// Names of the formats.
const (
	FioIolog = "fio iolog"
	Blkparse = "blkparse"
	Biosnoop = "biosnoop"
)

// maxText limits the text of a trace, which is read as a stream, in bytes.
const maxText = 1 << 40

// Parse reads a trace, in any encoding that package decode reads, and detects its format. device selects one of several
// devices ("8,0" for blkparse, "sda" for biosnoop), and is empty if there is one. Errors contain the line.
func Parse(from io.Reader, device string) (*Trace, error) {
	text, err := decode.NewReader(from, maxText)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	l := newLines(text)
	defer l.stop()
	if !l.next() {
		return nil, cmp.Or(l.err, errors.New("the trace is empty: want a fio iolog, or the text of blkparse or biosnoop"))
	}
	c := &collector{device: device}
	read := formatOf(l.text, c)
	if read == nil {
		return nil, l.errorf("unknown format: want a fio iolog, or the text of blkparse or biosnoop")
	}
	if c.format == FioIolog && device != "" {
		return nil, errors.New("a fio iolog has no devices: leave the device out")
	}
	if err := read(l, c); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	return c.trace()
}

func formatOf(first string, c *collector) func(*lines, *collector) error {
	switch {
	case isIolog(first):
		c.format = FioIolog
		return readIolog
	case isBiosnoop(first):
		c.format = Biosnoop
		return readBiosnoop
	case isBlkparse(first):
		c.format = Blkparse
		return readBlkparse
	}
	return nil
}
