package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Command returns the tree of commands for generated documentation. Defaults that depend on the user are those of root.
func Command() *cobra.Command {
	return newRoot(&streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
}
