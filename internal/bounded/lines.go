package bounded

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Line is a line of a log without its end.
type Line struct {
	Text []byte // its first bytes; valid until the next line
	Cut  int64  // how many bytes it has beyond Text
}

// String returns the text, and how much is cut.
func (l Line) String() string {
	if l.Cut == 0 {
		return string(l.Text)
	}
	return fmt.Sprintf("%s… (%d more bytes)", l.Text, l.Cut)
}

// Lines yields the lines of a log, each with at most most bytes of text, also of a last line without an end. It skips
// the rest of longer lines, so that its memory is bounded whatever the log has. An error of reading is the last value.
func Lines(from io.Reader, most int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r := bufio.NewReaderSize(from, 32<<10)
		text := make([]byte, 0, min(most, 32<<10))
		var cut int64
		for {
			part, err := r.ReadSlice('\n')
			ended := err == nil
			if ended {
				part = part[:len(part)-1]
			}
			keep := min(len(part), most-len(text))
			text, cut = append(text, part[:keep]...), cut+int64(len(part)-keep)
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if (ended || len(text) > 0) && !yield(Line{text, cut}, nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Line{}, err)
				return
			}
			text, cut = text[:0], 0
		}
	}
}
