package hack

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// pages lists the pages of the documentation, relative to the repository.
func pages(t *testing.T) (list []string) {
	t.Helper()
	for _, root := range []string{"README.md", "CONTRIBUTING.md", "docs", "examples"} {
		err := filepath.WalkDir(filepath.Join(repository, root), func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".md" {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code    = regexp.MustCompile("``.*?``|`[^`\n]+`")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	mark    = regexp.MustCompile(`<a id="([^"]+)">`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the link targets within a page, which GitHub derives from its headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{"": true}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := strings.ToLower(link.ReplaceAllString(m[1], ""))
		anchor := strings.ReplaceAll(dropped.ReplaceAllString(title, ""), " ", "-")
		for i, first := 0, anchor; all[anchor]; anchor = fmt.Sprintf("%s-%d", first, i) {
			i++
		}
		all[anchor] = true
	}
	for _, m := range mark.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	return all
}

// TestLinks checks that each link between pages leads to an existing page and heading.
func TestLinks(t *testing.T) {
	t.Parallel()
	links := 0
	for _, page := range pages(t) {
		text := code.ReplaceAllString(fence.ReplaceAllString(read(t, page), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: broken link %s", page, m[1])
			} else if anchor != "" && !anchors(read(t, path))[anchor] {
				t.Errorf("%s: link %s: the page has no such heading", page, m[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links: the pages were not read", links)
	}
}

// mention matches the path of a page in a message, a comment or a script.
var mention = regexp.MustCompile(`\bdocs/[\w./-]+\.md\b`)

// TestMentions checks that each page that code, scripts, manifests and examples mention exists.
func TestMentions(t *testing.T) {
	t.Parallel()
	mentions := 0
	kinds := []string{".go", ".sh", ".sql", ".tmpl", ".txt", ".yaml", ".yml", ".mjs", ".md", ".xml", ""}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (name == ".git" || name == "out" || name == "bin" || name == "node_modules"):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(kinds, filepath.Ext(name)):
			return nil
		}
		for _, page := range mention.FindAllString(read(t, path), -1) {
			mentions++
			if _, err := os.Stat(filepath.Join(repository, page)); err != nil {
				t.Errorf("%s mentions %s, which does not exist", path, page)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if mentions < 50 {
		t.Errorf("%d mentions: the files were not read", mentions)
	}
}

// flagInCode matches the names of validity flags in the code that raises them.
var flagInCode = regexp.MustCompile(
	`(?:[^.\w]flag\(|\.flag\([\w.]+, |\bwarn\(|\bwarnOf\(|\.invalid\(|(?:Finding|Flag)\{+Name: )"([a-z][A-Za-z-]+)"`)

// flagInTable matches a row of docs/reference/flags.md.
var flagInTable = regexp.MustCompile("(?m)^\\| `([a-z][A-Za-z-]+)` \\| (?:invalid|warning|info)")

// TestEveryFlagIsDocumented checks that the table of validity flags has exactly the flags that the
// code raises.
func TestEveryFlagIsDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, m := range flagInTable.FindAllStringSubmatch(read(t, filepath.Join(repository, "docs/reference/flags.md")), -1) {
		documented[m[1]] = true
	}
	var source strings.Builder
	for _, room := range []string{"analysis", "cli", "engine", "imported", "object", "run", "workload"} {
		err := filepath.WalkDir(filepath.Join(repository, "internal", room), func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
				source.WriteString(read(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	raised := flagInCode.FindAllStringSubmatch(source.String(), -1)
	if len(raised) < 40 {
		t.Errorf("found %d flags in the code: the way in which it raises them has changed", len(raised))
	}
	for _, m := range raised {
		if !documented[m[1]] {
			t.Errorf("docs/reference/flags.md lacks the flag %s", m[1])
		}
	}
	for name := range documented {
		if !strings.Contains(source.String(), `"`+name+`"`) {
			t.Errorf("docs/reference/flags.md has the flag %s, which the code does not raise", name)
		}
	}
}
