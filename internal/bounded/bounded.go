// Package bounded reads text from untrusted files with limits on lines and totals, which bound the memory.
package bounded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// ErrTooLarge is wrapped by every error of a limit.
var ErrTooLarge = errors.New("too large")

// Limits of a text in bytes; 0: none.
type Limits struct {
	Line  int64 // with its end
	Total int64 // once decompressed
	// CSV counts a line that ends inside quotes together with the next.
	CSV bool
}

// Reader passes a text on until it exceeds its limits. It is not safe for concurrent use.
type Reader struct {
	from    io.Reader
	limits  Limits
	total   int64
	number  int   // of the current line, from 1
	length  int64 // of the current line so far
	quoted  bool
	comment bool // in a comment, where quotes have no meaning
	err     error
}

// NewReader bounds the text of another reader.
func NewReader(from io.Reader, limits Limits) *Reader {
	return &Reader{from: from, limits: limits, number: 1}
}

// Err returns the exceeded limit, if any. Some parsers report a syntax error of the truncated text instead.
func (r *Reader) Err() error { return r.err }

// Read implements io.Reader. It never returns bytes beyond a limit.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.from.Read(p)
	if !r.limits.CSV {
		if n, r.err = r.countLines(p[:n]); r.err != nil {
			return n, r.err
		}
		return n, err
	}
	for i, c := range p[:n] {
		if r.err = r.count(c); r.err != nil {
			return i, r.err
		}
	}
	return n, err
}

// countLines is count for a text without quotes. It returns how many bytes are within the limits.
func (r *Reader) countLines(p []byte) (int, error) {
	var tooLong error
	if left := r.limits.Total - r.total; r.limits.Total > 0 && int64(len(p)) > left {
		p, tooLong = p[:left], r.totalExceeded()
	}
	r.total += int64(len(p))
	for at := 0; at < len(p); {
		n := bytes.IndexByte(p[at:], '\n')
		ended := n >= 0
		if !ended {
			n = len(p) - at
		}
		if left := r.limits.Line - r.length; r.limits.Line > 0 && int64(n) > left {
			return at + int(left), r.lineExceeded()
		}
		at, r.length = at+n, r.length+int64(n)
		if ended {
			at, r.number, r.length = at+1, r.number+1, 0
		}
	}
	return len(p), tooLong
}

// count is for CSV.
func (r *Reader) count(c byte) error {
	if r.total++; r.limits.Total > 0 && r.total > r.limits.Total {
		return r.totalExceeded()
	}
	switch {
	case r.length == 0 && c == '#':
		r.comment = true
	case c == '"' && !r.comment:
		r.quoted = !r.quoted
	}
	if c == '\n' && !r.quoted {
		r.number, r.length, r.comment = r.number+1, 0, false
		return nil
	}
	if r.length++; r.limits.Line > 0 && r.length > r.limits.Line {
		return r.lineExceeded()
	}
	return nil
}

func (r *Reader) totalExceeded() error {
	return fmt.Errorf("the text is longer than %s: %w", size(r.limits.Total), ErrTooLarge)
}

func (r *Reader) lineExceeded() error {
	return fmt.Errorf("line %d is longer than %s: %w", r.number, size(r.limits.Line), ErrTooLarge)
}

// ReadLine reads one line of at most most bytes, with its end. io.EOF accompanies a last line without an end.
func ReadLine(from *bufio.Reader, most int) ([]byte, error) { return AppendLine(nil, from, most) }

// AppendLine appends the rest of a line, as ReadLine reads it, to its begin.
func AppendLine(line []byte, from *bufio.Reader, most int) ([]byte, error) {
	for {
		part, err := from.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, fmt.Errorf("a line is longer than %s: %w", size(int64(most)), ErrTooLarge)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// ReadAll reads at most most bytes, and fails if there are more.
func ReadAll(from io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, fmt.Errorf("longer than %s: %w", size(most), ErrTooLarge)
	}
	return b, err
}

// ReadFile reads a file of at most most bytes; the error names it. With a nil fsys the name is an operating
// system path.
func ReadFile(fsys fs.FS, name string, most int64) ([]byte, error) {
	var f fs.File
	var err error
	if fsys == nil {
		f, err = os.Open(name)
	} else {
		f, err = fsys.Open(name)
	}
	if err != nil {
		return nil, err
	}
	b, err := ReadAll(f, most)
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return b, errors.Join(err, f.Close())
}

// ReadPrivate reads a file with a secret, of at most most bytes, without white space at its ends. It refuses a file that
// other users may read, except in a pod: Kubernetes mounts Secrets and tokens with mode 644, and only the pod sees them.
func ReadPrivate(name string, most int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return "", fmt.Errorf("%s is readable by others: chmod 600 it", name)
	}
	text, err := ReadAll(f, most)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// maxMessage is the length of a message of another program, in bytes: a driver or a cluster writes what it likes, and it
// gets into each op, log and table.
const maxMessage = 4 << 10

// Message returns a message of another program: its first 4 KiB, and how many bytes are left out.
func Message(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	head := strings.TrimSuffix(Text(s, maxMessage), "…")
	return fmt.Sprintf("%s… (%d more bytes)", head, len(s)-len(head))
}

// Text returns the first bytes of a text, at most that many and whole runes only, and a mark if something is left out.
func Text(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

func size(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
