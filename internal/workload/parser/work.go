package parser

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// work is what every parser of a run works on: the files of one container, and what is made of them.
type work struct {
	in  Input
	res Result
}

// warn adds a warning, each once.
func (w *work) warn(code, format string, args ...any) {
	w.add(Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

func (w *work) add(x Warning) {
	if !slices.Contains(w.res.Warnings, x) {
		w.res.Warnings = append(w.res.Warnings, x)
	}
}

// scalar adds a figure, each once.
func (w *work) scalar(of metric.Declaration, v float64) {
	if !slices.ContainsFunc(w.res.Scalars, func(s metric.Scalar) bool { return s.Metric == of.Name }) {
		w.res.Scalars = append(w.res.Scalars, of.Scalar(v))
	}
}

// walk calls read with each of the files that has one of the extensions, such as ".txt", or one of the names.
func (w *work) walk(read func(name string) error, extensions ...string) error {
	return fs.WalkDir(w.in.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(extensions, path.Ext(name)) && !slices.Contains(extensions, name) {
			return err
		}
		return read(name)
	})
}

// texts is walk with the whole text of each file of at most a number of bytes.
func (w *work) texts(most int64, read func(name, text string), extensions ...string) error {
	return w.walk(func(name string) error {
		text, ok, err := w.text(name, most)
		if ok {
			read(name, string(text))
		}
		return err
	}, extensions...)
}

// lines calls each with the lines of a file. What follows a line that is too long is not read, with a warning.
func (w *work) lines(name string, each func(row string)) error {
	err := readLines(w.in.Files, name, each)
	if errors.Is(err, bufio.ErrTooLong) {
		w.warn("outputUnread", "%s has a line of more than %d bytes: what follows is not read", name, maxLine)
		return nil
	}
	return err
}

// text returns a file of at most a number of bytes; false, with a warning, if it is larger.
func (w *work) text(name string, most int64) (text []byte, ok bool, err error) {
	text, err = bounded.ReadFile(w.in.Files, name, most)
	if errors.Is(err, bounded.ErrTooLarge) {
		w.warn("outputUnread", "%v", err)
		return nil, false, nil
	}
	return text, err == nil, err
}
