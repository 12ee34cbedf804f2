// Package workload reads the library of I/O workloads and renders its entries, which are
// manifests with variables from ConfigMaps or folders, to the objects of one instance.
package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// Annotations of an entry: default, type and description of a variable, and its value in a test of the entry.
const (
	defaultPrefix     = "cnsbench.default."
	typePrefix        = "cnsbench.type."
	testPrefix        = "cnsbench.test."
	descriptionPrefix = "cnsbench.description."
	descriptionKey    = "cnsbench.dev/description"
)

// maxFile bounds one file of an entry. It exceeds maxText, since files that are not
// templates are data.
const maxFile = 64 << 20

// entryFile is the file of a folder with the entry's name and annotations: a ConfigMap whose
// data are the other files.
const entryFile = "workload.yaml"

// Entry is one workload of a library.
type Entry struct {
	Name        string
	Origin      string // source of the entry, for messages
	Description string
	Defaults    map[string]string        // of variables
	Types       map[string]variable.Type // of variables; without one any text is valid
	Meanings    map[string]string        // of variables
	Tests       map[string]string        // values of variables for a short test of the entry, where the default is not one
	Parts       []Part                   // sorted by key
}

// Part is one file of an entry: a manifest when its key ends in .yaml or .yml,
// else a configuration file.
type Part struct{ Key, Text string }

// Manifest reports whether the part has objects.
func (p Part) Manifest() bool {
	return strings.HasSuffix(p.Key, ".yaml") || strings.HasSuffix(p.Key, ".yml")
}

// secretKind finds a Secret in a manifest whose variables need not be filled in.
var secretKind = regexp.MustCompile(`\bkind["']?\s*:\s*["']?Secret\b`)

// WithoutSecrets returns a copy in which parts that have a Secret are empty.
func (e *Entry) WithoutSecrets() *Entry {
	kept := *e
	kept.Parts = slices.Clone(e.Parts)
	for i := range kept.Parts {
		if p := &kept.Parts[i]; p.Manifest() && secretKind.MatchString(p.Text) {
			p.Text = ""
		}
	}
	return &kept
}

// IsEntry reports whether a ConfigMap is an entry of a library.
func IsEntry(cm *corev1.ConfigMap) bool { return cm.Labels["type"] == "workload" }

// FromConfigMap reads an entry from a ConfigMap with the label type: workload, whose keys
// are manifests.
func FromConfigMap(cm *corev1.ConfigMap, origin string) (*Entry, error) {
	switch {
	case cm.Name == "":
		return nil, errors.New("the ConfigMap has no name")
	case !IsEntry(cm):
		return nil, fmt.Errorf("ConfigMap %q has no label type: workload", cm.Name)
	case len(cm.Data) == 0:
		return nil, fmt.Errorf("ConfigMap %q has no data: its keys are the workload's manifests", cm.Name)
	}
	e := &Entry{Name: cm.Name, Origin: origin, Description: cm.Annotations[descriptionKey],
		Defaults: map[string]string{}, Types: map[string]variable.Type{}, Meanings: map[string]string{},
		Tests: map[string]string{}}
	for k, v := range cm.Annotations {
		if name, ok := strings.CutPrefix(k, defaultPrefix); ok {
			e.Defaults[name] = v
		}
		if name, ok := strings.CutPrefix(k, descriptionPrefix); ok {
			e.Meanings[name] = v
		}
		if name, ok := strings.CutPrefix(k, testPrefix); ok {
			e.Tests[name] = v
		}
	}
	for _, k := range sortedKeys(cm.Data) {
		part := Part{k, cm.Data[k]}
		// The prototype's first entries had manifests under bare keys.
		if !part.Manifest() && looksLikeManifest(part.Text) {
			part.Key += ".yaml"
		}
		e.Parts = append(e.Parts, part)
	}
	if err := e.readTypes(cm.Annotations); err != nil {
		return e, err
	}
	return e, e.checkTests()
}

// checkTests checks the values for a test.
func (e *Entry) checkTests() error {
	for _, name := range sortedKeys(e.Tests) {
		if !slices.Contains(e.Variables(), name) {
			return fmt.Errorf("annotation %s%s: workload %q has no variable %q", testPrefix, name, e.Name, name)
		}
		if p := e.check(name, e.Tests[name]); p != nil {
			return fmt.Errorf("annotation %s%s: %s", testPrefix, name, p.Message)
		}
	}
	return nil
}

// readTypes reads the types of the variables and checks their defaults.
func (e *Entry) readTypes(annotations map[string]string) error {
	known := e.Variables()
	for _, k := range sortedKeys(annotations) {
		name, ok := strings.CutPrefix(k, typePrefix)
		if !ok {
			continue
		}
		if !slices.Contains(known, name) {
			return fmt.Errorf("annotation %s: workload %q has no variable %q", k, e.Name, name)
		}
		t, err := variable.Parse(annotations[k])
		if err != nil {
			return fmt.Errorf("annotation %s: %w", k, err)
		}
		e.Types[name] = t
		if value, ok := e.Defaults[name]; ok {
			if p := e.check(name, value); p != nil {
				return fmt.Errorf("annotation %s%s: %s", defaultPrefix, name, p.Message)
			}
		}
	}
	return nil
}

func looksLikeManifest(text string) bool {
	return strings.Contains(text, "apiVersion:") && strings.Contains(text, "kind:")
}

// SHA256 returns the digest, in hex, of the entry's name, defaults, types and parts.
func (e *Entry) SHA256() string {
	sum := sha256.New()
	write := func(text string) { fmt.Fprintf(sum, "%d:%s", len(text), text) } // a hash never fails
	write(e.Name)
	for _, k := range sortedKeys(e.Defaults) {
		write(k)
		write(e.Defaults[k])
	}
	for _, k := range sortedKeys(e.Types) {
		write(typePrefix + k)
		write(e.Types[k].String())
	}
	write("")
	for _, p := range e.Parts {
		write(p.Key)
		write(p.Text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// FromFolder reads an entry from a folder: workload.yaml has its name and defaults (a
// ConfigMap without data), the other files except README are its parts.
func FromFolder(fsys fs.FS, dir, origin string) (*Entry, error) {
	files, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", dir, err)
	}
	cm := corev1.ConfigMap{Data: map[string]string{}}
	cm.Name = path.Base(dir)
	cm.Labels = map[string]string{"type": "workload"}
	for _, f := range files {
		if f.IsDir() || strings.HasPrefix(f.Name(), ".") || strings.HasPrefix(strings.ToUpper(f.Name()), "README") {
			continue
		}
		text, err := bounded.ReadFile(fsys, path.Join(dir, f.Name()), maxFile)
		if err != nil {
			return nil, fmt.Errorf("workload %q: %w", dir, err)
		}
		if f.Name() != entryFile {
			cm.Data[f.Name()] = string(text)
			continue
		}
		var head corev1.ConfigMap
		if err := yaml.UnmarshalStrict(text, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Join(dir, entryFile), err)
		}
		if head.Name != "" {
			cm.Name = head.Name
		}
		cm.Annotations = head.Annotations
		maps.Copy(cm.Data, head.Data)
	}
	return FromConfigMap(&cm, origin)
}

// Library is a set of entries. The zero value is empty and ready to use. It is not safe for
// concurrent changes.
type Library struct{ entries map[string]func() *Entry }

// Add adds an entry, replacing one of the same name.
func (l *Library) Add(e *Entry) {
	l.add(e.Name, func() *Entry { return e })
}

func (l *Library) add(name string, entry func() *Entry) {
	if l.entries == nil {
		l.entries = map[string]func() *Entry{}
	}
	l.entries[name] = entry
}

// AddAll adds the entries of another library, replacing those of the same name.
func (l *Library) AddAll(other *Library) {
	for name, entry := range other.entries {
		l.add(name, entry)
	}
}

// Get returns the entry of that name.
func (l *Library) Get(name string) (*Entry, bool) {
	entry, ok := l.entries[name]
	if !ok {
		return nil, false
	}
	return entry(), true
}

// Names returns the names of the entries, sorted.
func (l *Library) Names() []string { return sortedKeys(l.entries) }

// Embedded returns the library of a program's own files. An entry has the name of its folder, and is read when it is
// first used, since to read all takes a large part of the time of a short command. It panics if that fails.
func Embedded(fsys fs.FS, origin string) (*Library, error) {
	folders, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("library %s: %w", origin, err)
	}
	l := &Library{}
	for _, f := range folders {
		l.add(f.Name(), sync.OnceValue(func() *Entry {
			e, err := FromFolder(fsys, f.Name(), origin)
			if err != nil {
				panic(err)
			}
			return e
		}))
	}
	return l, nil
}

// FromFolders reads a library: each folder of fsys and each YAML file with a library
// ConfigMap is an entry.
func FromFolders(fsys fs.FS, origin string) (*Library, error) {
	l := &Library{}
	files, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("library %s: %w", origin, err)
	}
	for _, f := range files {
		var e *Entry
		switch {
		case strings.HasPrefix(f.Name(), "."):
			continue
		case f.IsDir():
			e, err = FromFolder(fsys, f.Name(), origin)
		case Part{Key: f.Name()}.Manifest():
			e, err = fromFile(fsys, f.Name(), origin)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("library %s: %w", origin, err)
		}
		l.Add(e)
	}
	return l, nil
}

func fromFile(fsys fs.FS, name, origin string) (*Entry, error) {
	text, err := bounded.ReadFile(fsys, name, maxFile)
	if err != nil {
		return nil, err
	}
	var cm corev1.ConfigMap
	if err := yaml.Unmarshal(text, &cm); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return FromConfigMap(&cm, origin)
}

// Clone returns an independent library with the same entries.
func (l *Library) Clone() *Library { return &Library{entries: maps.Clone(l.entries)} }
