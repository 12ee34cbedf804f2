package agent

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// gifts says how large the files to give are.
func (s *Session) gifts() ([]protocol.FileSpec, error) {
	var list []protocol.FileSpec
	for _, g := range s.opts.Give {
		fi, err := os.Stat(g.Source)
		if err != nil {
			return nil, err
		}
		list = append(list, protocol.FileSpec{Path: g.Path, Size: fi.Size(), Mode: uint32(g.Mode.Perm())})
	}
	return list, nil
}

// give sends the files; a session whose file cannot be read is abandoned. It
// ends with the connection.
func (s *Session) give(conn *protocol.Conn) {
	for _, g := range s.opts.Give {
		if err := send(conn, g); err != nil {
			s.Abandon(fmt.Errorf("give it %s: %w", g.Path, err))
			return
		}
	}
}

func send(conn *protocol.Conn, g Gift) error {
	f, err := os.Open(g.Source)
	if err != nil {
		return err
	}
	defer f.Close() // was only read
	buf := make([]byte, protocol.Chunk)
	for offset := int64(0); ; {
		n, err := f.Read(buf)
		if n > 0 {
			m := protocol.Message{File: &protocol.File{Name: g.Path, Offset: offset}, Body: buf[:n]}
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
