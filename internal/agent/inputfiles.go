package agent

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// fileSpecs lists the input files with their sizes.
func (s *Session) fileSpecs() ([]protocol.FileSpec, error) {
	var list []protocol.FileSpec
	for _, g := range s.opts.Files {
		fi, err := os.Stat(g.Source)
		if err != nil {
			return nil, err
		}
		list = append(list, protocol.FileSpec{Path: g.Path, Size: fi.Size(), Mode: uint32(g.Mode.Perm())})
	}
	return list, nil
}

// sendFiles sends the input files. It abandons the session if a file cannot be read.
func (s *Session) sendFiles(conn *protocol.Conn) {
	for _, g := range s.opts.Files {
		if err := sendFile(conn, g); err != nil {
			s.Abandon(fmt.Errorf("send %s: %w", g.Path, err))
			return
		}
	}
}

func sendFile(conn *protocol.Conn, g InputFile) error {
	f, err := os.Open(g.Source)
	if err != nil {
		return err
	}
	defer f.Close()
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
