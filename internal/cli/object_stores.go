package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// checkStores checks the settings of stores before anything is sent. Missing files and credentials are errors only if
// this process runs the workload.
func checkStores(s *streams, file string, w *model.Workload, here bool) error {
	opener, said, problems := backend.Opener{Clock: op.NewClock(), Getenv: os.Getenv}, map[string]bool{},
		model.Problems{}
	check := opener.Check
	if here {
		check = func(m *model.Store) error {
			_, err := opener.Store(m)
			return err
		}
	}
	add := func(line int, err error) {
		var absent *fs.PathError
		switch {
		case err == nil || said[err.Error()]:
			return
		case !here && errors.As(err, &absent):
			problems.Warn(line, "it must exist on the hosts that run the workload", "%v", err)
		default:
			problems.Fail(line, "", "%v", err)
		}
		said[err.Error()] = true
	}
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			if work.Kind == model.Delay {
				continue
			}
			add(work.Store.Line, check(&work.Store))
			for k := range work.Ops {
				o := &work.Ops[k]
				if o.Files != "" {
					_, err := os.ReadDir(o.Files)
					add(o.Line, err)
				}
				if o.Keys.File != "" {
					add(o.Line, readable(o.Keys.File))
				}
			}
		}
	}
	for _, p := range problems {
		fmt.Fprintf(s.err, "%s:%s\n", file, p)
	}
	if problems.Fatal() {
		return fmt.Errorf("%s cannot be run", file)
	}
	return nil
}

// readable returns an error unless a file can be opened for reading.
func readable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return &fs.PathError{Op: "read", Path: name, Err: unix.EISDIR}
	}
	return nil
}

// warnUnsigned warns of stores whose requests are not signed because there are no credentials.
func warnUnsigned(s *streams, file string, w *model.Workload) {
	opener, problems := backend.Opener{Getenv: os.Getenv}, model.Problems{}
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			m := &work.Store
			d := backend.Find(m.Kind)
			if work.Kind == model.Delay || d == nil || d.Unsigned == "" || m.Settings["credentials"] != "" ||
				// which has to have some
				slices.ContainsFunc(problems, func(p model.Problem) bool { return p.Line == m.Line }) {
				continue
			}
			if secrets, err := opener.Secrets(m); err == nil && len(secrets) == 0 {
				problems.Warn(m.Line, d.Unsigned, "there are no credentials for storage %s: its requests are not "+
					"signed", m.Kind)
			}
		}
	}
	for _, p := range problems {
		fmt.Fprintf(s.err, "%s:%s\n", file, p)
	}
}
