// Command cnsbench benchmarks cloud native storage.
package main

import (
	"os"

	"github.com/cnsbench/cnsbench/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
