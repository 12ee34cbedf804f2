package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/otlp"
	"github.com/cnsbench/cnsbench/internal/export/perfetto"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// The formats of export --format. The others are those of tables.
const (
	formatPerfetto = "perfetto"
	formatOTLP     = "otlp"
)

// exportFormats are the values of --format.
var exportFormats = []string{string(table.CSV), string(table.JSON), string(table.Parquet), formatPerfetto, formatOTLP}

// tables are the values of --table.
var tables = map[string]func(*bundle.Bundle) (*table.Table, error){
	"ops": table.Ops, "series": table.Series, "figures": table.Summary, "stalls": table.Stalls,
}

// checkFile checks the flags of --format.
func (f *exportFlags) checkFile() error {
	isTable := f.format != formatPerfetto && f.format != formatOTLP
	switch {
	case !slices.Contains(exportFormats, f.format):
		return fmt.Errorf("invalid --format %q: want %s", f.format, strings.Join(exportFormats, ", "))
	case tables[f.table] == nil:
		return fmt.Errorf("invalid --table %q: want ops, series, figures or stalls", f.table)
	case !isTable && f.given("table"):
		return fmt.Errorf("--table is of the formats csv, json and parquet, not of %s", f.format)
	case f.endpoint != "" && f.format != formatOTLP:
		return fmt.Errorf("--endpoint is of --format %s, not of %s", formatOTLP, f.format)
	case f.endpoint != "" && f.given("out"):
		return fmt.Errorf("choose --out or --endpoint: the traces go to one of them")
	case f.given("within") && f.endpoint == "":
		return fmt.Errorf("--within limits sending: want it with --pending, --all or --endpoint")
	}
	return nil
}

// file writes a bundle in a format to a file or the standard output, or sends it to an endpoint.
func (f *exportFlags) file(ctx context.Context, s *streams, dir string) error {
	var sender *otlp.Sender
	if f.endpoint != "" {
		var err error
		if sender, err = otlp.NewSender(f.endpoint, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS")); err != nil {
			return err
		}
	}
	b, err := openBundle(s, dir)
	if err != nil {
		return err
	}
	if b.Live {
		return failed(fmt.Errorf("the run of %s is in progress: export its bundle when it has ended", dir))
	}
	err = f.deliver(ctx, s, sender, b)
	if errors.Is(err, context.Canceled) {
		return &exit{exitInterrupted, errors.New("interrupted")}
	}
	return err
}

// deliver sends a bundle to an endpoint, if there is one, or writes it.
func (f *exportFlags) deliver(ctx context.Context, s *streams, to *otlp.Sender, b *bundle.Bundle) error {
	write := func(w io.Writer) error { return f.write(&stoppable{ctx, w}, b) }
	switch {
	case to != nil:
		return failed(sendTraces(ctx, s, to, b))
	case f.out != "-":
		return writeFile(ctx, f.out, write)
	case f.format == string(table.Parquet) && isTerminal(s.out):
		return fmt.Errorf("parquet is binary: choose a file with --out")
	case f.format == string(table.Parquet):
		return quietPipe(write(visible.Raw(s.out)))
	}
	return quietPipe(write(&visible.Writer{To: visible.Raw(s.out), JSON: f.format != string(table.CSV)}))
}

// stoppable is a writer that fails when its context ends, which ends an export.
type stoppable struct {
	ctx context.Context
	to  io.Writer
}

// Write implements io.Writer.
func (w *stoppable) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}

func isTerminal(w io.Writer) bool {
	f, ok := visible.Raw(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// write writes a bundle in the format.
func (f *exportFlags) write(w io.Writer, b *bundle.Bundle) error {
	switch f.format {
	case formatPerfetto:
		return perfetto.Write(w, b)
	case formatOTLP:
		out := bufio.NewWriterSize(w, 256<<10)
		for batch, err := range otlp.Batches(b) {
			if err == nil {
				_, err = out.Write(append(batch.Body, '\n'))
			}
			if err != nil {
				return err
			}
		}
		return out.Flush()
	}
	t, err := tables[f.table](b)
	if err != nil {
		return err
	}
	return t.Write(w, table.Format(f.format))
}

// sendTraces sends the traces of a bundle and prints what was sent.
func sendTraces(ctx context.Context, s *streams, sender *otlp.Sender, b *bundle.Bundle) error {
	sent, err := sender.Send(ctx, otlp.Batches(b))
	visible.Fprintf(s.out, "sent %s with %s in %s, %d repeated\n", count(sent.Traces, "trace"), count(sent.Spans, "span"),
		count(sent.Requests, "request"), sent.Repeated)
	if err == nil && sent.Rejected > 0 {
		err = fmt.Errorf("the receiver rejected %s: %s", count(sent.Rejected, "span"), sent.Message)
	}
	return err
}
