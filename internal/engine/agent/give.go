package agent

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/engine/agent/wire"
)

// gifts says how large the files to give are.
func (s *Session) gifts() ([]wire.FileSpec, error) {
	var list []wire.FileSpec
	for _, g := range s.opts.Give {
		fi, err := os.Stat(g.Source)
		if err != nil {
			return nil, err
		}
		list = append(list, wire.FileSpec{Path: g.Path, Size: fi.Size(), Mode: uint32(g.Mode.Perm())})
	}
	return list, nil
}

// give sends the files; a session whose file cannot be read is abandoned. It
// ends with the connection.
func (s *Session) give(conn *wire.Conn) {
	for _, g := range s.opts.Give {
		if err := send(conn, g); err != nil {
			s.Abandon(fmt.Errorf("give it %s: %w", g.Path, err))
			return
		}
	}
}

func send(conn *wire.Conn, g Gift) error {
	f, err := os.Open(g.Source)
	if err != nil {
		return err
	}
	defer f.Close() // was only read
	buf := make([]byte, wire.Chunk)
	for offset := int64(0); ; {
		n, err := f.Read(buf)
		if n > 0 {
			m := wire.Message{File: &wire.File{Name: g.Path, Offset: offset}, Body: buf[:n]}
			if err := conn.Write(m); err != nil {
				return err
			}
			offset += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
