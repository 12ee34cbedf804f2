package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// block matches the place of the tables of a type and of the types of its fields.
var block = regexp.MustCompile(`(?s)(<!-- fields (\w+) -->\n).*?(<!-- /fields -->)`)

// scalars is the name of the block with the table of all scalar types.
const scalars = "scalars"

// book is the set of pages with field tables.
type book struct {
	types  map[string]*apiType
	page   map[string]string   // page of each type that has a table
	usedBy map[string][]string // fields of each type, as Type.field, and types that embed it
}

// writeFields replaces the tables in all pages of a folder.
func writeFields(types map[string]*apiType, folder string) error {
	pages, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return err
	}
	b := &book{types: types, page: map[string]string{}, usedBy: map[string][]string{}}
	texts, roots := map[string][]byte{}, map[string]string{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		texts[page] = text
		for _, m := range block.FindAllSubmatch(text, -1) {
			roots[string(m[2])] = filepath.Base(page)
		}
	}
	tables := b.assign(roots)
	for page, text := range texts {
		text = block.ReplaceAllFunc(text, func(old []byte) []byte {
			m := block.FindSubmatch(old)
			return bytes.Join([][]byte{m[1], b.tables(string(m[2]), filepath.Base(page), tables), m[3]}, nil)
		})
		if err := os.WriteFile(page, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// assign returns the types of each root: the types that its fields refer to and that are not roots
// themselves.
func (b *book) assign(roots map[string]string) map[string][]string {
	tables := map[string][]string{}
	var walk func(root, name string)
	walk = func(root, name string) {
		t := b.types[name]
		if t == nil || t.fields == nil || b.page[name] != "" {
			return
		}
		b.page[name] = roots[root]
		tables[root] = append(tables[root], name)
		fields, embedded := t.own()
		for _, f := range fields {
			if _, other := roots[f.typ.base]; !other {
				walk(root, f.typ.base)
			}
		}
		for _, e := range embedded {
			walk(root, e)
		}
	}
	names := make([]string, 0, len(roots))
	for name := range roots {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		walk(name, name)
	}
	for name := range b.page {
		fields, embedded := b.types[name].own()
		for _, f := range fields {
			b.usedBy[f.typ.base] = append(b.usedBy[f.typ.base], name+"."+f.name)
		}
		for _, e := range embedded {
			b.usedBy[e] = append(b.usedBy[e], name)
		}
	}
	return tables
}

// own returns the fields that a type does not have from embedded types, and the names of those types.
func (t *apiType) own() (fields []field, embedded []string) {
	for _, f := range t.fields {
		switch {
		case f.from == "":
			fields = append(fields, f)
		case !slices.Contains(embedded, f.from):
			embedded = append(embedded, f.from)
		}
	}
	return fields, embedded
}

// tables returns the sections of the types below a root.
func (b *book) tables(root, page string, all map[string][]string) []byte {
	var out bytes.Buffer
	if root == scalars {
		b.scalars(&out)
		return out.Bytes()
	}
	for _, name := range all[root] {
		b.table(&out, b.types[name], page)
	}
	return out.Bytes()
}

func (b *book) table(out *bytes.Buffer, t *apiType, page string) {
	fmt.Fprintf(out, "\n### %s\n\n%s\n", t.name, wrapped(t.doc))
	slices.Sort(b.usedBy[t.name])
	if users := b.usedBy[t.name]; len(users) > 0 {
		for i, u := range users {
			owner, _, _ := strings.Cut(u, ".")
			users[i] = fmt.Sprintf("[`%s`](%s)", u, b.link(owner, page))
		}
		fmt.Fprintf(out, "\nUsed in:\n%s.\n", strings.Join(users, ",\n"))
	}
	fields, embedded := t.own()
	rules := t.marks.rules()
	for _, e := range embedded {
		rules = append(rules, fmt.Sprintf("It also has the fields of [%s](%s).", e, b.link(e, page)))
	}
	if len(rules) > 0 {
		fmt.Fprintln(out)
		for _, rule := range rules {
			fmt.Fprintf(out, "- %s\n", strings.ReplaceAll(wrapped(rule), "\n", "\n  "))
		}
	}
	if len(fields) > 0 {
		fmt.Fprintf(out, "\n| field | type | default | allowed | description |\n|---|---|---|---|---|\n")
	}
	for _, f := range fields {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", f.name, b.typeText(f.typ, page), f.defaultText(),
			f.marks.allowed(), cell(f.doc))
	}
	fmt.Fprintln(out)
}

// typeText returns the name of a type with a link to its table.
func (b *book) typeText(t fieldType, page string) string {
	if b.types[t.base] == nil {
		return t.prefix + t.base
	}
	return fmt.Sprintf("%s[%s](%s)", t.prefix, t.base, b.link(t.base, page))
}

// link returns a link from a page to the table of a type.
func (b *book) link(name, page string) string {
	at, anchor := b.page[name], strings.ToLower(name)
	if at == "" {
		at, anchor = "benchmark.md", "types-of-values"
	}
	if at == page {
		at = ""
	}
	return at + "#" + anchor
}

func (f field) defaultText() string {
	if d := f.marks["default"]; len(d) > 0 && d[0] != "{}" {
		// In a marker a list has braces.
		return "`" + strings.NewReplacer("{", "[", "}", "]", `"`, "").Replace(d[0]) + "`"
	}
	if f.required {
		return "required"
	}
	return ""
}

// scalars writes the table of the scalar types.
func (b *book) scalars(out *bytes.Buffer) {
	fmt.Fprintf(out, "\n| type | allowed | description |\n|---|---|---|\n")
	names := []string{}
	for name, t := range b.types {
		if t.fields == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		t := b.types[name]
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", name, t.marks.allowed(), cell(t.doc))
	}
	fmt.Fprintln(out)
}

// message matches the message of a CEL rule.
var message = regexp.MustCompile(`message="(.*)"$`)

// rules returns the messages of the rules on a whole object.
func (m marks) rules() (all []string) {
	for _, names := range m["ExactlyOneOf"] {
		all = append(all, "Exactly one of "+quoted(names)+" must be set.")
	}
	for _, names := range m["AtMostOneOf"] {
		all = append(all, "At most one of "+quoted(names)+" may be set.")
	}
	for _, rule := range m["XValidation"] {
		if text := message.FindStringSubmatch(rule); text != nil {
			all = append(all, "Rule: "+text[1]+".")
		}
	}
	return all
}

// allowed returns the values that a field accepts.
func (m marks) allowed() string {
	var all []string
	for _, enum := range append(m["Enum"], m["items:Enum"]...) {
		all = append(all, quoted(strings.ReplaceAll(enum, `"`, ""))) // without the quotes that keep a number a text
	}
	if pattern := m["Pattern"]; len(pattern) > 0 {
		all = append(all, "pattern `` "+strings.ReplaceAll(strings.Trim(pattern[0], "`"), "|", `\|`)+" ``")
	}
	all = append(all, m.bounds("Minimum", "Maximum", ""), m.bounds("items:Minimum", "items:Maximum", ""),
		m.bounds("MinLength", "MaxLength", " characters"), m.bounds("MinItems", "MaxItems", " items"),
		m.bounds("MinProperties", "MaxProperties", " entries"))
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// bounds returns a minimum and a maximum as text.
func (m marks) bounds(least, most, unit string) string {
	low, high := m[least], m[most]
	switch {
	case len(low) > 0 && len(high) > 0:
		return low[0] + " to " + high[0] + unit
	case len(high) > 0:
		return "at most " + high[0] + unit
	case len(low) > 0 && len(m["ExclusiveMinimum"]) > 0:
		return "more than " + low[0]
	case len(low) > 0:
		return "at least " + low[0] + unit
	}
	return ""
}

// wrapped breaks text into lines of at most 120 columns.
func wrapped(text string) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		if n := utf8.RuneCountInString(word); i > 0 && column+n > 116 {
			out.WriteString("\n")
			column = 0
		} else if i > 0 {
			out.WriteString(" ")
		}
		out.WriteString(word)
		column += utf8.RuneCountInString(word) + 1
	}
	return out.String()
}

func quoted(names string) string {
	return "`" + strings.ReplaceAll(names, ";", "`, `") + "`"
}

// cell escapes text for a table cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
