package wrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// intake writes the files that the runner gives, one after the other.
type intake struct {
	files []protocol.FileSpec // those to come; the first is being written
	file  *os.File            // the first's
	done  chan error          // one value: when the last is there, or it failed
}

func newIntake(files []protocol.FileSpec) *intake {
	in := &intake{files: files, done: make(chan error, 1)}
	in.proceed(0)
	return in
}

// take writes the bytes of one message. What comes after a failure, or was not
// announced, is passed over.
func (in *intake) take(f *protocol.File, data []byte) {
	if in.file == nil || f.Name != in.files[0].Path {
		return
	}
	n, err := in.file.WriteAt(data, f.Offset)
	if err != nil {
		in.end(err)
		return
	}
	in.proceed(f.Offset + int64(n))
}

// proceed goes on to the next file when the first has size bytes.
func (in *intake) proceed(size int64) {
	for len(in.files) > 0 {
		if in.file == nil {
			f, err := create(in.files[0])
			if err != nil {
				in.end(err)
				return
			}
			in.file = f
		}
		if size < in.files[0].Size {
			return
		}
		err := in.file.Close()
		in.file, in.files, size = nil, in.files[1:], 0
		if err != nil {
			in.end(err)
			return
		}
	}
	in.end(nil)
}

// create makes a file, and its directory, with its mode whatever the umask.
func create(spec protocol.FileSpec) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(spec.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(fs.FileMode(spec.Mode) & fs.ModePerm); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (in *intake) end(err error) {
	if in.file != nil {
		_ = in.file.Close() // it is of no use any more
		in.file = nil
	}
	in.files = nil
	select {
	case in.done <- err:
	default:
	}
}

// receive returns when all files are there; the exit says why they are not.
func (s *session) receive(ctx context.Context) *protocol.Exit {
	for {
		select {
		case err := <-s.intake.done:
			if err == nil {
				return nil
			}
			return &protocol.Exit{At: s.clock.Now(), ExitCode: 126, Code: protocol.CodeExec, Message: fmt.Sprintf("a file of the runner's could not be written: %v", err)}
		case sig := <-s.signals:
			if ending(sig) {
				exit := s.calledOff(unix.Signal(sig.Number))
				return &exit
			}
		case <-s.lost:
			exit := s.calledOff(unix.SIGTERM)
			return &exit
		case <-ctx.Done():
			exit := s.calledOff(unix.SIGTERM)
			return &exit
		}
	}
}
