// Command cephcounters prints the OSDs' counters as JSON: cephcounters DIRECTORY, summed since their starts; with a
// command after the directory, what was counted while the command ran.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/cnsbench/cnsbench/test/storagedriver/counters"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: cephcounters DIRECTORY [COMMAND...]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "cephcounters:", err)
		os.Exit(1)
	}
}

func run(dir string, command []string) error {
	sum, err := counters.Read(dir)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		before := sum
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr // standard output is the counters'
		if err := cmd.Run(); err != nil {
			return err
		}
		if sum, err = counters.Read(dir); err != nil {
			return err
		}
		sum = sum.Since(before)
	}
	return json.NewEncoder(os.Stdout).Encode(sum)
}
