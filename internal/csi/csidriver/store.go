package csidriver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

// phase says whether an object is complete. It is written before the physical work, so that a restarted
// driver knows what to undo.
type phase string

const (
	ready    phase = ""
	creating phase = "creating"
	deleting phase = "deleting"
)

// volume is the record of one volume. Records are values: change a clone and put it.
type volume struct {
	ID, Name string
	Phase    phase             `json:",omitempty"`
	Size     int64             // bytes
	Block    bool              `json:",omitempty"` // raw block volume
	FSType   string            `json:",omitempty"` // loopfile only
	Params   map[string]string `json:",omitempty"`
	Mutable  map[string]string `json:",omitempty"`
	Source   *source           `json:",omitempty"`
	// Formatted: the image contains a file system. NeedsGrow: the file system is smaller than the image.
	Formatted, NeedsGrow bool                   `json:",omitempty"`
	Attached             *attachment            `json:",omitempty"`
	Staged               map[string]string      `json:"StagedOn,omitempty"` // staging path → node
	Published            map[string]publication `json:",omitempty"`         // target path → how
}

// source is the content source of a volume; one field is set.
type source struct{ Snapshot, Volume string }

type attachment struct {
	ReadOnly bool
	Mode     string   // access mode
	Device   string   `json:",omitempty"`
	Nodes    []string // attached nodes; more than one only in a multi-node mode
}

type publication struct {
	ReadOnly bool
	Mode     string
	Node     string
}

// usedOn counts the paths at which the volume is staged and published on a node.
func (v volume) usedOn(node string) (staged, published int) {
	for _, on := range v.Staged {
		if on == node {
			staged++
		}
	}
	for _, p := range v.Published {
		if p.Node == node {
			published++
		}
	}
	return staged, published
}

func (v volume) clone() volume {
	v.Mutable, v.Staged, v.Published = maps.Clone(v.Mutable), maps.Clone(v.Staged), maps.Clone(v.Published)
	if v.Staged == nil {
		v.Staged = map[string]string{}
	}
	if v.Published == nil {
		v.Published = map[string]publication{}
	}
	return v
}

// snapshot is the record of one snapshot.
type snapshot struct {
	ID, Name string
	Phase    phase `json:",omitempty"`
	Volume   string
	Size     int64 // bytes
	Created  int64 // wall clock, ns
	Group    string
	// Block, FSType and Formatted are the volume's, for volumes made from the snapshot.
	Block     bool   `json:",omitempty"`
	FSType    string `json:",omitempty"`
	Formatted bool   `json:",omitempty"`
}

// group is the record of one group snapshot.
type group struct {
	ID, Name  string
	Phase     phase `json:",omitempty"`
	Volumes   []string
	Snapshots []string
	Created   int64
}

// table keeps the records of one kind in memory and in a journal with one JSON line per change: a file per
// record would cost null a quarter of a millisecond per change. It is safe for concurrent use; the driver's
// locks exclude two writers of one record.
type table[T any] struct {
	path    string // empty: memory only
	durable bool   // survive power loss, not only the end of the process

	mu    sync.RWMutex
	rows  map[string]T
	file  *os.File
	lines int   // in the journal
	size  int64 // of the journal, bytes
}

// change is one line of the journal; without a row the record is deleted.
type change[T any] struct {
	ID  string
	Row *T `json:",omitempty"`
}

// spareLines is how many lines the journal may exceed the records before it is rewritten.
const spareLines = 100_000

// openTable reads the journal and compacts it. It drops an unfinished last line. With an error it returns the
// readable records.
func openTable[T any](path string, durable bool) (*table[T], error) {
	t := &table[T]{path: path, durable: durable, rows: map[string]T{}}
	if path == "" {
		return t, nil
	}
	if err := t.read(); err != nil {
		return t, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return t, err
	}
	return t, t.compact()
}

// read replays the journal, up to an unfinished last line.
func (t *table[T]) read() error {
	text, err := readState(t.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		var c change[T]
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("state file %s is damaged: %w: destroy the base directory to start over", t.path, err)
		}
		if c.Row != nil {
			t.rows[c.ID] = *c.Row
		} else {
			delete(t.rows, c.ID)
		}
	}
	return nil
}

// readState reads a state file. It says what is unmounted and removed, so only this user can have written it: a regular
// file in a directory, neither behind a link, that others cannot write.
func readState(path string) ([]byte, error) {
	dir, err := os.Lstat(filepath.Dir(path))
	if err == nil {
		err = trusted(dir, filepath.Dir(path), dir.IsDir())
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("state file %s is a link, which this driver does not make", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = trusted(info, path, info.Mode().IsRegular())
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// trusted refuses state that another user can have written.
func trusted(info fs.FileInfo, path string, kind bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !kind:
		return fmt.Errorf("state %s is %v, which this driver does not make", path, info.Mode())
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Errorf("state %s belongs to another user", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("state %s can be written by others (mode %04o)", path, info.Mode().Perm())
	}
	return nil
}

// compact replaces the journal by one line per record; the caller holds mu, or t is not shared yet.
func (t *table[T]) compact() error {
	var text bytes.Buffer
	for id, row := range t.rows {
		line, err := json.Marshal(change[T]{id, &row})
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	if err := replaceFile(t.path, text.Bytes(), t.durable); err != nil {
		return err
	}
	file, err := os.OpenFile(t.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	old := t.file
	t.file, t.lines, t.size = file, len(t.rows), int64(text.Len())
	return closeFile(old)
}

func (t *table[T]) get(id string) (T, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	row, ok := t.rows[id]
	return row, ok
}

// all returns the records ordered by id.
func (t *table[T]) all() []T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rows := make([]T, 0, len(t.rows))
	for _, id := range slices.Sorted(maps.Keys(t.rows)) {
		rows = append(rows, t.rows[id])
	}
	return rows
}

func (t *table[T]) put(id string, row T) error { return t.write(change[T]{id, &row}) }

func (t *table[T]) delete(id string) error { return t.write(change[T]{ID: id}) }

func (t *table[T]) write(c change[T]) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file, err := t.apply(c, append(line, '\n'))
	if err == nil && file != nil && t.durable {
		// Outside the lock, so that concurrent changes share a commit. A closed file was replaced by one
		// that contains the change and is durable.
		if err = file.Sync(); errors.Is(err, os.ErrClosed) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("write the state of %s: %w", c.ID, err)
	}
	return nil
}

// apply changes journal and record together and returns the journal to sync, if any.
func (t *table[T]) apply(c change[T], line []byte) (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		if _, err := t.file.Write(line); err != nil {
			return nil, errors.Join(err, t.file.Truncate(t.size)) // a partial line on a full disk
		}
		t.lines++
		t.size += int64(len(line))
	}
	if c.Row != nil {
		t.rows[c.ID] = *c.Row
	} else {
		delete(t.rows, c.ID)
	}
	if t.lines > 4*len(t.rows)+spareLines {
		return nil, t.compact()
	}
	return t.file, nil
}

func (t *table[T]) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return closeFile(t.file)
}

func replaceFile(path string, text []byte, durable bool) error {
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil || !durable {
		return err
	}
	return hostfs.SyncFile(filepath.Dir(path))
}

func closeFile(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

func (v volume) proto() *csi.Volume {
	p := &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Size, VolumeContext: map[string]string{}}
	if v.FSType != "" && !v.Block {
		p.VolumeContext["fsType"] = v.FSType
	}
	switch {
	case v.Source == nil:
	case v.Source.Snapshot != "":
		p.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Source.Snapshot}}}
	default:
		p.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Source.Volume}}}
	}
	return p
}

func (s snapshot) proto() *csi.Snapshot {
	return &csi.Snapshot{SnapshotId: s.ID, SourceVolumeId: s.Volume, SizeBytes: s.Size, ReadyToUse: true,
		CreationTime: timestamppb.New(time.Unix(0, s.Created)), GroupSnapshotId: s.Group}
}
