package wrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// fileReceiver writes the runner's input files, one after the other.
type fileReceiver struct {
	files []protocol.FileSpec // remaining files; the first is being written
	file  *os.File            // open file of files[0]
	done  chan error          // receives one value after the last file or a failure
}

func newFileReceiver(files []protocol.FileSpec) *fileReceiver {
	in := &fileReceiver{files: files, done: make(chan error, 1)}
	in.advance(0)
	return in
}

// write writes the bytes of one message. It ignores unannounced files and anything after a failure.
func (in *fileReceiver) write(f *protocol.File, data []byte) {
	if in.file == nil || f.Name != in.files[0].Path {
		return
	}
	n, err := in.file.WriteAt(data, f.Offset)
	if err != nil {
		in.finish(err)
		return
	}
	in.advance(f.Offset + int64(n))
}

// advance closes the current file when it has size bytes and opens the next.
func (in *fileReceiver) advance(size int64) {
	for len(in.files) > 0 {
		if in.file == nil {
			f, err := create(in.files[0])
			if err != nil {
				in.finish(err)
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
			in.finish(err)
			return
		}
	}
	in.finish(nil)
}

// create creates a file with its mode, whatever the umask, and its directory.
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

func (in *fileReceiver) finish(err error) {
	if in.file != nil {
		_ = in.file.Close() // the stream is broken
		in.file = nil
	}
	in.files = nil
	select {
	case in.done <- err:
	default:
	}
}

// receiveFiles returns when all files are complete, or with an exit that says why they are not.
func (s *session) receiveFiles(ctx context.Context) *protocol.Exit {
	err, sig := awaitOr(ctx, s, s.inputFiles.done)
	if sig != 0 {
		exit := s.cancelled(sig)
		return &exit
	}
	if err == nil {
		return nil
	}
	exit := s.execFailed(fmt.Errorf("write an input file: %w", err))
	return &exit
}
