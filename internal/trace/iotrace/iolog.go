package iotrace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const iologHeader = "fio version %d iolog"

func isIolog(first string) bool {
	return strings.HasPrefix(first, "fio version ") && strings.HasSuffix(first, " iolog")
}

// iolog is the state of a parser of fio's iolog.
type iolog struct {
	version int
	now     int64 // ns
	files   map[string]int
}

// readIolog reads what write_iolog of fio writes. Version 3 has the time of each line in microseconds. Version 2 has
// times only if there are lines with the action wait, whose offset is microseconds since the wait before; without them
// all operations are at 0.
func readIolog(l *lines, c *collector) error {
	g := iolog{files: map[string]int{}}
	switch l.text {
	case fmt.Sprintf(iologHeader, 2):
		g.version = 2
	case fmt.Sprintf(iologHeader, 3):
		g.version = 3
	default:
		return l.errorf("unsupported header %q: want version 2 or 3", l.text)
	}
	for l.next() {
		if err := g.line(strings.Fields(l.text), c); err != nil {
			return l.errorf("%w", err)
		}
	}
	return nil
}

func (g *iolog) line(fields []string, c *collector) error {
	if g.version == 3 {
		us, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || us < 0 || us > maxTime/1000 {
			return fmt.Errorf("invalid time %q: want microseconds", fields[0])
		}
		if us*1000 < g.now {
			return fmt.Errorf("time %d us is before that of the line above: sort the trace", us)
		}
		g.now, fields = us*1000, fields[1:]
	}
	switch len(fields) {
	case 2:
		if a := fields[1]; a != "add" && a != "open" && a != "close" && a != "unlink" {
			return fmt.Errorf("invalid action %q: want add, open or close, or offset and length after it", a)
		}
		return nil
	case 4:
	default:
		return fmt.Errorf("invalid number of fields: want file, action, offset and length%s",
			map[bool]string{true: " after the time"}[g.version == 3])
	}
	offset, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return fmt.Errorf("invalid offset %q", fields[2])
	}
	size, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return fmt.Errorf("invalid length %q", fields[3])
	}
	return g.io(fields[0], fields[1], offset, size, c)
}

func (g *iolog) io(file, action string, offset, size int64, c *collector) error {
	x := IO{At: g.now, Op: Op(action), Offset: offset, Size: size, Latency: Unknown}
	switch action {
	case "wait":
		if g.version == 3 {
			return errors.New("action wait is not allowed in version 3")
		}
		if offset < 0 || offset > (maxTime-g.now)/1000 {
			return fmt.Errorf("invalid wait %d", offset)
		}
		g.now += offset * 1000
		return nil
	case "sync", "datasync":
		x.Offset, x.Size = 0, 0
	case "sync_file_range":
		x.Op, x.Offset, x.Size = DataSync, 0, 0
	case "read", "write", "trim":
	default:
		return fmt.Errorf("unknown action %q", action)
	}
	n, ok := g.files[file]
	if !ok {
		if n = len(g.files); n == maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		g.files[file] = n
	}
	return c.add(x, n)
}

// WriteIolog writes the operations as fio's iolog version 3 on one file, dealt to lanes in turn: each lane is the log
// of one fio job.
func WriteIolog(ios []IO, file string, lanes []io.Writer) error {
	out := make([]*bufio.Writer, len(lanes))
	for i := range lanes {
		out[i] = bufio.NewWriter(lanes[i])
		fmt.Fprintf(out[i], iologHeader+"\n0 %s add\n1 %s open\n", 3, file, file)
	}
	for i, x := range ios {
		// fio takes a first time of 0 for none.
		fmt.Fprintf(out[i%len(out)], "%d %s %s %d %d\n", 1+x.At/1000, file, x.Op, x.Offset, x.Size)
	}
	var errs []error
	for _, w := range out {
		errs = append(errs, w.Flush())
	}
	return errors.Join(errs...)
}
