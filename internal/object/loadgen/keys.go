package loadgen

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/cnsbench/cnsbench/internal/decode"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// maxKeyList is the number of existing objects that an operation may read.
const maxKeyList = 10_000_000

// keyList has the names of existing objects, one after the other.
type keyList struct {
	text []byte
	ends []int
}

func (l *keyList) add(key string) error {
	if key == "" || key == client.Marker {
		return nil
	}
	if len(l.ends) == maxKeyList {
		return fmt.Errorf("more than %d keys", maxKeyList)
	}
	l.text = append(l.text, key...)
	l.ends = append(l.ends, len(l.text))
	return nil
}

// at is the i-th key.
func (l *keyList) at(i int64) []byte {
	begin := 0
	if i > 0 {
		begin = l.ends[i-1]
	}
	return l.text[begin:l.ends[i]]
}

// loadKeys reads the names of the existing objects of each operation that has them, before its work begins.
func (k *working) loadKeys(ctx context.Context, s client.Store) error {
	for i := range k.work.Ops {
		o := &k.work.Ops[i]
		if !o.Keys.Given() {
			continue
		}
		list, container := &keyList{}, string(containerName(nil, o, o.Containers.Low))
		var err error
		if o.Keys.File != "" {
			err = list.fromFile(o.Keys.File, container)
		} else {
			err = list.fromStore(ctx, s, container, o.Keys.Prefix)
		}
		if err == nil && len(list.ends) == 0 {
			err = errors.New("there are none")
		}
		if err != nil {
			return atLine(o.Line, fmt.Errorf("the keys of %s: %w", o.Name, err))
		}
		k.keys[i] = list
		k.cursors[i].files.Begin(k.work.Start(selector.Spec{High: int64(len(list.ends)) - 1}))
	}
	return nil
}

// maxKeys bounds a decompressed list of keys, in bytes.
const maxKeys = 64 << 30

// fromFile reads a file with a key in each line or, if its name ends in .csv or .csv.gz, an inventory as S3 writes it:
// the bucket and the key, encoded as in a URL, are its first columns.
func (l *keyList) fromFile(path, container string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, name := io.Reader(f), path
	if rest, zipped := strings.CutSuffix(path, ".gz"); zipped {
		text, err := decode.NewReader(f, maxKeys)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer text.Close()
		in = text
		name = rest
	}
	if strings.HasSuffix(name, ".csv") {
		if err = l.inventory(in, container); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := l.add(lines.Text()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

func (l *keyList) inventory(in io.Reader, container string) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(row) < 2 {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d has no bucket and key", line)
		}
		if row[0] != container {
			continue
		}
		key, err := url.QueryUnescape(row[1])
		if err == nil {
			err = l.add(key)
		}
		if err != nil {
			return err
		}
	}
}

// fromStore lists the keys with a prefix.
func (l *keyList) fromStore(ctx context.Context, s client.Store, container, prefix string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, c.Abort)()
	r := client.Request{Verb: client.List, Container: []byte(container), Object: []byte(prefix), MaxKeys: 1000,
		Names: true}
	for {
		var res client.Result
		if c.Do(ctx, &r, &res); !res.OK() {
			return fmt.Errorf("list %s: %s %s", container, res.Label(), res.Detail)
		}
		for _, name := range res.Names {
			if err := l.add(name); err != nil {
				return err
			}
		}
		if r.Page = res.Next; r.Page == "" {
			return nil
		}
	}
}

// existing chooses one of the existing objects of an operation.
func (w *worker) existing(i int, o *model.Op) {
	list := w.keys[i]
	n := int64(len(list.ends))
	if o.InOrder {
		w.object = append(w.object[:0], list.at(w.cursors[i].files.Next()%n)...)
		return
	}
	w.object = append(w.object[:0], list.at(w.rng.Int64N(n))...)
}
