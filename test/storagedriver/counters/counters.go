// Package counters reads the performance counters of OSDs from their admin sockets: what to check figures of a Ceph
// against.
package counters

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"
)

// OSDs are counters summed over OSDs since their starts. Operations of clients are counted by the primary OSD; copies
// and shards at other OSDs are not among them.
type OSDs struct {
	Reads        int64 `json:"op_r"`
	ReadBytes    int64 `json:"op_r_out_bytes"`
	Writes       int64 `json:"op_w"`
	WrittenBytes int64 `json:"op_w_in_bytes"`
	// CopiedWrites are the writes of further copies; for erasure coded pools they are not counted.
	CopiedWrites int64 `json:"subop_w"`
	// StoredBytes is what BlueStore wrote of objects' data: with StoredBytes/WrittenBytes as the factor of a pool.
	StoredBytes int64 `json:"bluestore_write_bytes"`
}

// Read sums the counters of the OSDs that have an admin socket in the directory of make ceph-up.
func Read(dir string) (OSDs, error) {
	sockets, err := filepath.Glob(filepath.Join(dir, "run", "ceph-osd.*.asok"))
	if err == nil && len(sockets) == 0 {
		err = fmt.Errorf("no admin socket of an OSD in %s/run: run make ceph-up", dir)
	}
	var sum OSDs
	for _, socket := range sockets {
		if err != nil {
			break
		}
		var one OSDs
		if one, err = read(socket); err == nil {
			sum = sum.add(one, 1)
		}
	}
	return sum, err
}

// Since returns what was counted after an earlier reading.
func (o OSDs) Since(earlier OSDs) OSDs { return o.add(earlier, -1) }

func (o OSDs) add(other OSDs, sign int64) OSDs {
	return OSDs{o.Reads + sign*other.Reads, o.ReadBytes + sign*other.ReadBytes, o.Writes + sign*other.Writes,
		o.WrittenBytes + sign*other.WrittenBytes, o.CopiedWrites + sign*other.CopiedWrites,
		o.StoredBytes + sign*other.StoredBytes}
}

// read asks one admin socket: the command ends with a zero byte, the answer begins with its length in four bytes.
func read(socket string) (OSDs, error) {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return OSDs{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return OSDs{}, err
	}
	if _, err := conn.Write([]byte("{\"prefix\":\"perf dump\"}\x00")); err != nil {
		return OSDs{}, err
	}
	in := bufio.NewReader(conn)
	var length uint32
	if err := binary.Read(in, binary.BigEndian, &length); err != nil {
		return OSDs{}, fmt.Errorf("%s: %w", socket, err)
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(length)))
	if err != nil {
		return OSDs{}, fmt.Errorf("%s: %w", socket, err)
	}
	var dump struct {
		OSD       OSDs `json:"osd"`
		BlueStore struct {
			Big   int64 `json:"bluestore_write_big_bytes"`
			Small int64 `json:"bluestore_write_small_bytes"`
		} `json:"bluestore"`
	}
	if err := json.Unmarshal(text, &dump); err != nil {
		return OSDs{}, fmt.Errorf("%s: %w", socket, err)
	}
	dump.OSD.StoredBytes = dump.BlueStore.Big + dump.BlueStore.Small
	return dump.OSD, nil
}
