package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// outIsFile records that --out of a command is a file, not a directory.
func outIsFile(c *cobra.Command) {
	if err := c.MarkFlagFilename("out"); err != nil {
		panic(err) // the command has no such flag
	}
}

// outFile is a file that the user named for output.
type outFile struct {
	path string // as the user named it
	// whole is the path of the regular file to replace, after symbolic links, which need not exist. It is empty for what
	// is not replaced, such as a device, a named pipe or /dev/stdout.
	whole string
	open  *os.File // what path is already open as; nil: it is not
}

// outFileAt finds out what is at a path.
func outFileAt(name string) (*outFile, error) {
	o := &outFile{path: name, whole: name}
	for hops := 0; ; hops++ {
		to, err := os.Readlink(o.whole)
		if err != nil {
			break // not a link
		}
		if hops == 40 {
			return nil, o.failed(syscall.ELOOP)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(o.whole) + string(filepath.Separator) + to // not cleaned: the directory may be a link
		}
		o.whole = to
	}
	info, err := os.Stat(name)
	if err != nil {
		return o, nil //nolint:nilerr // it is missing, or creating it fails
	}
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if same, err := f.Stat(); err == nil && os.SameFile(info, same) {
			o.whole, o.open = "", f
			return o, nil
		}
	}
	// A link of /proc may lead to a file without a name.
	if end, err := os.Stat(o.whole); err != nil || !info.Mode().IsRegular() || !os.SameFile(info, end) {
		o.whole = ""
	}
	return o, nil
}

// failed is an error of the output, without the name of a temporary file.
func (o *outFile) failed(err error) error {
	var named *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &named):
		err = named.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &exit{exitUsage, fmt.Errorf("write %s: %w", o.path, err)}
}

// take puts a file that is beside it in the place of a regular file.
func (o *outFile) take(file string) error { return os.Rename(file, o.whole) }

// openPipe opens a named pipe once a program reads it.
func openPipe(ctx context.Context, name string) (*os.File, error) {
	for {
		f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// create opens a temporary file beside the place of a regular file, and other things as they are.
func (o *outFile) create(ctx context.Context) (*os.File, error) {
	switch info, err := os.Stat(o.path); {
	case o.whole != "":
		return os.CreateTemp(filepath.Dir(o.whole), ".cnsbench-*.tmp")
	case o.open != nil:
		return o.open, nil
	case err == nil && info.Mode()&os.ModeNamedPipe != 0:
		return openPipe(ctx, o.path)
	}
	return os.OpenFile(o.path, os.O_WRONLY|os.O_TRUNC, 0)
}

// noted is a writer that keeps its error.
type noted struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (n *noted) Write(b []byte) (int, error) {
	written, err := n.to.Write(b)
	n.err = cmp.Or(n.err, err)
	return written, err
}

// writeFile writes a file that the user named: a regular one, also at the end of symbolic links, whole or not at all.
// What is not a regular file is opened and written. The error has an exit status.
func writeFile(ctx context.Context, name string, write func(io.Writer) error) error {
	o, err := outFileAt(name)
	if err != nil {
		return err
	}
	f, err := o.create(ctx)
	if err != nil {
		return o.failed(err)
	}
	defer context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Now()) })() // ends a write to a named pipe
	to := &noted{to: f}
	w := bufio.NewWriterSize(to, 256<<10)
	err = write(w)
	if err == nil {
		_ = w.Flush() // the error is in to
	}
	if to.err == nil && o.whole != "" {
		to.err = f.Chmod(0o644)
	}
	if o.open == nil {
		to.err = cmp.Or(to.err, f.Close())
	}
	if err == nil && to.err == nil && o.whole != "" {
		to.err = o.take(f.Name())
	}
	switch {
	case to.err != nil && ctx.Err() == nil:
		err = o.failed(to.err)
	case err != nil || to.err != nil:
		err = failed(cmp.Or(ctx.Err(), err))
	}
	if err != nil && o.whole != "" {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

// checkOut refuses a file to write that is a directory or in none, before the command begins: a trace of an hour or a
// report of a million operations must not be lost at its end.
func checkOut(c *cobra.Command) error {
	f := c.Flags().Lookup("out")
	if f == nil || f.Value.String() == "" || f.Value.String() == "-" {
		return nil
	}
	if _, file := f.Annotations[cobra.BashCompFilenameExt]; !file {
		return nil
	}
	path := f.Value.String()
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		name := "FILE"
		if f.DefValue != "-" {
			name = cmp.Or(f.DefValue, "report.html")
		}
		return fmt.Errorf("invalid --out %q: it is a directory: want a file, such as %s", path, filepath.Join(path, name))
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("invalid --out %q: there is no directory %s: create it, or name another file", path, dir)
	}
	return nil
}
