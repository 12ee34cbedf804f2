package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/decode"
)

// size is the value of a flag in bytes; 0: the default.
type size int64

// maxSizeFlag adds the flag that limits what compressed files yield. Commands with it open foreign files by
// streams.open.
func maxSizeFlag(c *cobra.Command, s *streams) {
	c.Flags().Var(&s.maxSize, decode.Flag, "most that a compressed file may yield, unless 100 times its size is more "+
		"(default 64Mi)")
}

func (m *size) String() string { return "" }

func (m *size) Type() string { return "size" }

func (m *size) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return fmt.Errorf("want a size such as 2Gi: %w", err)
	case q.Value() < 1:
		return errors.New("want more than 0")
	}
	*m = size(q.Value())
	return nil
}

// open opens a foreign file for reading, with the limit of the flag; "-" is the standard input.
func (s *streams) open(name string) (io.ReadCloser, error) {
	in := io.NopCloser(s.in)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		in = f
	}
	return struct {
		decode.Sized
		io.Closer
	}{decode.Sized{Reader: in, MaxYield: int64(s.maxSize)}, in}, nil
}
