// Command reference writes the generated pages of docs/reference: the field tables of the Benchmark file from the types
// of api/v1alpha1, and a page for each command from its flags and help.
//
// Field tables stand between the lines "<!-- fields TYPE -->" and "<!-- /fields -->" of a page; all other text of the
// page is written by hand and kept. Pages of commands, in the folder cli, are generated as a whole.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference API-FOLDER PAGES-FOLDER")
		os.Exit(1)
	}
	os.Clearenv() // some flags have defaults from the environment
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func generate(api, pages string) error {
	types, err := readTypes(api)
	if err != nil {
		return err
	}
	if err := writeFields(types, pages); err != nil {
		return err
	}
	return writeCommands(pages + "/cli")
}
