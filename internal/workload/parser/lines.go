package parser

import (
	"bufio"
	"bytes"
	"io/fs"
)

// maxLine bounds a line of a tool's text. Those of a report are short, and a title is a command.
const maxLine = 1 << 20

// readLines calls f with the lines of a file, of progress too; a half-written one is left out. The error is
// bufio.ErrTooLong for a line of more than maxLine bytes.
func readLines(files fs.FS, name string, f func(row string)) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	lines.Split(splitLine)
	for lines.Scan() {
		f(lines.Text())
	}
	return lines.Err()
}

// splitLine splits at the ends of lines and of progress; a half-written line is left out.
func splitLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}
