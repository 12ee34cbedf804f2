package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// noteDelay is how long notes and Dones may stay in memory. They are synced with the next Add or, after this time,
// together: a sync for each would delay other users of the disk.
const noteDelay = time.Second

// BootData is the member of an entry's data with the boot of the machine that it cannot outlive, as processes. Such an
// entry is not synced, which would be load on a disk that a run may measure.
const BootData = "boot"

// Ledger records what must be removed, beyond the life of the process. It is safe for concurrent use.
// Concurrent Adds share one sync.
type Ledger struct {
	file *os.File
	lock *os.File // held by OpenLedger only
	work chan struct{}
	done chan struct{}

	mu      sync.Mutex
	changed *sync.Cond // synced or err changed
	pending []byte
	queued  int64 // Adds and Dones appended
	synced  int64 // number of durable ones
	err     error
	closed  bool
	waiting bool // pending has lines, and they will be written within noteDelay
	lasting bool // pending has lines of what outlives a boot of the machine
	open    ledgerState
}

// ledgerLine is one line of the file: an entry, or the mark that one is done.
type ledgerLine struct {
	Add  *op.LedgerEntry `json:"add,omitempty"`
	Done *ledgerKey      `json:"done,omitempty"`
}

type ledgerKey struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// ledgerState is the set of entries not done, in order of their first Add.
type ledgerState struct {
	seq     int64
	entries map[ledgerKey]ledgerItem
}

type ledgerItem struct {
	seq   int64
	entry op.LedgerEntry
}

func (s *ledgerState) apply(l ledgerLine) {
	if s.entries == nil {
		s.entries = make(map[ledgerKey]ledgerItem)
	}
	if l.Done != nil {
		delete(s.entries, *l.Done)
	}
	if l.Add != nil {
		k := ledgerKey{l.Add.Kind, l.Add.Name}
		seq := s.seq
		if old, ok := s.entries[k]; ok {
			seq = old.seq
		}
		s.entries[k] = ledgerItem{seq: seq, entry: *l.Add}
		s.seq++
	}
}

func (s *ledgerState) list() []op.LedgerEntry {
	items := slices.SortedFunc(maps.Values(s.entries), func(a, b ledgerItem) int { return cmp.Compare(a.seq, b.seq) })
	list := make([]op.LedgerEntry, len(items))
	for i, it := range items {
		list[i] = it.entry
	}
	return list
}

// readLedger replays a ledger up to a torn last line; good is the length read.
func readLedger(r io.Reader) (s ledgerState, good int64, err error) {
	for line, err := range splitLines(r) {
		if err != nil {
			return s, good, err
		}
		var l ledgerLine
		if !bytes.HasSuffix(line, []byte{'\n'}) || json.Unmarshal(line, &l) != nil {
			break
		}
		s.apply(l)
		good += int64(len(line))
	}
	return s, good, nil
}

// CheckBundle fails unless dir is a bundle: it has run.json or a ledger, which a run has from its first
// moment.
func CheckBundle(dir string) error {
	switch {
	case pathExists(filepath.Join(dir, runFile)), pathExists(filepath.Join(dir, ledgerFile)):
		return nil
	case !pathExists(dir):
		return fmt.Errorf("no bundle at %s", dir)
	}
	return fmt.Errorf("%s is not a bundle: no %s", dir, runFile)
}

// ReadLedger lists the entries of a dead run's bundle that are not done, oldest first, and changes nothing. A directory
// without a ledger has none. It fails while the run is alive.
func ReadLedger(dir string) ([]op.LedgerEntry, error) {
	lock, free, err := lockDir(dir, unix.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("bundle: open ledger: %w", err)
	}
	if !free {
		return nil, inUse(dir)
	}
	entries, err := LedgerIn(bounded.Dir(dir))
	return entries, errors.Join(err, unlock(lock))
}

func inUse(dir string) error {
	return fmt.Errorf("bundle: %s is in use: its run is alive, stop it first", dir)
}

// OpenLedger opens the ledger of a dead run's bundle to finish its clean-up; a directory without one gets an
// empty one. It fails while the run is alive.
func OpenLedger(dir string) (*Ledger, error) {
	lock, free, err := lockDir(dir, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("bundle: open ledger: %w", err)
	}
	if !free {
		return nil, inUse(dir)
	}
	l, err := OpenLedgerIn(bounded.Dir(dir))
	if err != nil {
		return nil, errors.Join(err, unlock(lock))
	}
	l.lock = lock
	return l, nil
}

// OpenLedgerIn opens or creates the ledger in a directory, replays it and truncates a torn tail. The caller lets no other
// process open it meanwhile.
func OpenLedgerIn(dir bounded.Dir) (*Ledger, error) {
	f, err := dir.Append(ledgerFile)
	if err != nil {
		return nil, fmt.Errorf("bundle: open ledger: %w", err)
	}
	state, good, err := readLedger(f)
	if err == nil {
		err = f.Truncate(good)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bundle: read ledger %s: %w", f.Name(), err), f.Close())
	}
	l := &Ledger{file: f, work: make(chan struct{}, 1), done: make(chan struct{}), open: state}
	l.changed = sync.NewCond(&l.mu)
	go l.commit()
	return l, nil
}

// LedgerIn lists the entries of the ledger in a directory that are not done, oldest first, and changes nothing. A
// directory without one has none.
func LedgerIn(dir bounded.Dir) ([]op.LedgerEntry, error) {
	f, err := dir.Open(ledgerFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	defer f.Close()
	s, _, err := readLedger(f)
	if err != nil {
		return nil, fmt.Errorf("bundle: read %s: %w", f.Name(), err)
	}
	return s.list(), nil
}

// Add returns when e is written, and durable if what it lists outlives a boot of the machine. Adding an entry again
// replaces its data.
func (l *Ledger) Add(e op.LedgerEntry) error {
	n, err := l.enqueue(ledgerLine{Add: &e}, true, e.Data[BootData] == "")
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.synced < n && l.err == nil {
		l.changed.Wait()
	}
	if l.synced < n {
		return l.err
	}
	return nil
}

// Note adds an entry without waiting for the disk. It is for what a clean-up finds without the entry, and is lost if
// the process is killed within a second.
func (l *Ledger) Note(e op.LedgerEntry) error {
	_, err := l.enqueue(ledgerLine{Add: &e}, false, true)
	return err
}

// Done marks an entry as removed. It does not wait for the disk: an entry that reappears after a crash costs
// one harmless removal.
func (l *Ledger) Done(kind, name string) error {
	_, err := l.enqueue(ledgerLine{Done: &ledgerKey{kind, name}}, false, true)
	return err
}

// enqueue appends a line for the committer and returns its number. If it is not urgent, it is written with the next
// urgent one, or after noteDelay. If it is lasting, it is synced then.
func (l *Ledger) enqueue(line ledgerLine, urgent, lasting bool) (int64, error) {
	b, err := json.Marshal(line)
	if err != nil {
		return 0, fmt.Errorf("bundle: ledger: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	if l.closed {
		return 0, errors.New("bundle: the ledger is closed")
	}
	l.pending = append(append(l.pending, b...), '\n')
	l.queued++
	l.lasting = l.lasting || lasting
	l.open.apply(line)
	if urgent {
		l.wake()
	} else if !l.waiting {
		l.waiting = true
		time.AfterFunc(noteDelay, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.wake()
		})
	}
	return l.queued, nil
}

// wake lets the committer write, unless the ledger is closed. The caller holds mu.
func (l *Ledger) wake() {
	if l.closed {
		return
	}
	select {
	case l.work <- struct{}{}:
	default:
	}
}

// Open lists entries not done, oldest first.
func (l *Ledger) Open() []op.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open.list()
}

// commit writes pending lines and syncs once for all of them, if one is lasting.
func (l *Ledger) commit() {
	defer close(l.done)
	var batch []byte
	for range l.work {
		l.mu.Lock()
		batch, l.pending, l.waiting = l.pending, batch[:0], false
		n, sync := l.queued, l.lasting
		l.lasting = false
		l.mu.Unlock()
		err := l.write(batch, sync)
		l.mu.Lock()
		if err != nil {
			l.err = err
		} else {
			l.synced = n
		}
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}

func (l *Ledger) write(b []byte, sync bool) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	if _, err := l.file.Write(b); err != nil {
		return fmt.Errorf("bundle: write ledger: %w", err)
	}
	if !sync {
		return nil
	}
	if err := unix.Fdatasync(int(l.file.Fd())); err != nil {
		return fmt.Errorf("bundle: sync ledger %s: %w", l.file.Name(), err)
	}
	return nil
}

// Close writes pending lines, syncs and closes the ledger. It is idempotent.
func (l *Ledger) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.wake()
	l.closed = true
	close(l.work)
	l.mu.Unlock()
	<-l.done
	err := errors.Join(l.err, l.file.Close())
	if l.lock != nil {
		err = errors.Join(err, unlock(l.lock))
	}
	return err
}
