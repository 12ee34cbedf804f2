package trace

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Write writes a trace in the format of the file name's extension: JSON lines for .jsonl, else CSV; with .gz
// it is also compressed. Equal records give equal compressed files.
func Write(w io.Writer, name string, records []Record) error {
	rest, compress := strings.CutSuffix(name, ".gz")
	var z *gzip.Writer
	if compress {
		z, _ = gzip.NewWriterLevel(w, gzip.BestCompression) // no error: the level is valid
		w = z
	}
	out := bufio.NewWriterSize(w, 64<<10)
	write := writeCSV
	if strings.HasSuffix(rest, ".jsonl") {
		write = writeLines
	}
	err := errors.Join(write(out, records), out.Flush())
	if z != nil {
		err = errors.Join(err, z.Close())
	}
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

func writeCSV(out *bufio.Writer, records []Record) error {
	fmt.Fprintf(out, "%s%d\n", comment, Version)
	c := csv.NewWriter(out)
	if err := c.Write(columns); err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		row := []string{strconv.FormatInt(r.Time, 10), string(r.Op), string(r.Kind), r.Object, r.Source, r.Class,
			number(r.Size, 0), r.Node, r.Outcome, number(r.Duration, Unknown)}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// number formats n, or returns "" if n is the value for unknown.
func number(n, unknown int64) string {
	if n == unknown {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func writeLines(out *bufio.Writer, records []Record) error {
	fmt.Fprintf(out, "{\"cnsbenchTrace\": %d}\n", Version)
	e := json.NewEncoder(out)
	for i := range records {
		r := &records[i]
		l := line{Time: &r.Time, Op: r.Op, Kind: r.Kind, Object: r.Object, Source: r.Source, Class: r.Class,
			Size: r.Size, Node: r.Node, Outcome: r.Outcome}
		if r.Duration != Unknown {
			l.Duration = &r.Duration
		}
		if err := e.Encode(&l); err != nil {
			return err
		}
	}
	return nil
}
