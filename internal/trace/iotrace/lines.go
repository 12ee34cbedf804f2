package iotrace

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// maxLine is the length of the longest line in bytes.
const maxLine = 4096

// lines are the lines of a trace that are not blank.
type lines struct {
	pull   func() (bounded.Line, error, bool)
	stop   func()
	number int
	text   string
	err    error
}

func newLines(from io.Reader) *lines {
	l := &lines{}
	l.pull, l.stop = iter.Pull2(bounded.Lines(from, maxLine))
	return l
}

// next reads the next line that is not blank. Without one it returns false, and err is the error, if any.
func (l *lines) next() bool {
	for l.err == nil {
		line, err, ok := l.pull()
		if !ok {
			return false
		}
		if l.number++; err != nil {
			l.err = l.errorf("%w", err)
			return false
		}
		switch l.text = strings.TrimSpace(string(line.Text)); {
		case strings.ContainsRune(l.text, 0) || !utf8.ValidString(l.text):
			l.err = l.errorf("binary data: want text (blkparse makes it of blktrace's files)")
		case line.Cut > 0:
			l.err = l.errorf("the line is longer than %d bytes", maxLine)
		case l.text != "":
			return true
		}
	}
	return false
}

func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{l.number}, args...)...)
}

var errSeconds = errors.New("want seconds such as 1.000123")

// parseDecimal parses a decimal number such as 1.000123 exactly and multiplies it by unit, a power of ten.
func parseDecimal(text string, unit int64) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || int64(n) > maxTime/unit {
		return 0, errSeconds
	}
	value := int64(n) * unit
	for _, c := range fraction {
		if c < '0' || c > '9' {
			return 0, errSeconds
		}
		unit /= 10
		value += int64(c-'0') * unit
	}
	return value, nil
}
