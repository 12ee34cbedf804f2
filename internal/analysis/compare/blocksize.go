package compare

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/expr"
)

// Shares by which IOPS × size may differ from a bandwidth.
const (
	sameBlock  = 0.02 // to conclude that both are of one test
	otherBlock = 0.05 // to doubt a figure
)

// blockSizes checks, if a block size is given or assumed, each bandwidth against the IOPS of the same kind of I/O in
// the same cell. Where both are of one test, IOPS × size is the bandwidth. Where the bandwidth is of larger blocks, it
// cannot have more operations than small blocks have.
func (s *study) blockSizes() {
	if s.options.AssumeBlock == 0 && len(s.options.BlockSizes) == 0 {
		return
	}
	for i, large := range s.table.Metrics {
		for j, small := range s.table.Metrics {
			if dimensionOf(large) == bandwidth && dimensionOf(small) == operations &&
				subject(large.Name) == subject(small.Name) {
				s.consistent(i, j)
			}
		}
	}
}

// consistent checks one pair of metrics in all cells.
func (s *study) consistent(large, small int) {
	toBytes, toOps := scales[s.table.Metrics[large].Unit].factor, scales[s.table.Metrics[small].Unit].factor
	size := map[int]float64{} // bytes of an operation, by cell
	agree := map[float64]int{}
	for cell := range s.table.Cells {
		b, o := key{Metric: large, Cell: cell}, key{Metric: small, Cell: cell}
		if _, ok := s.cells[b]; !ok {
			continue
		}
		if _, ok := s.cells[o]; !ok {
			continue
		}
		size[cell] = s.typical(b) * toBytes / (s.typical(o) * toOps)
		if power, ok := powerOfTwo(size[cell], sameBlock); ok {
			agree[power]++
		}
	}
	for power, n := range agree {
		if 2*n > len(size) {
			s.sameTest(large, small, size, power)
			return
		}
	}
	block, from := s.blockOf(s.table.Metrics[large].Name)
	for _, cell := range slices.Sorted(maps.Keys(size)) {
		if bytes := size[cell]; block > 0 && bytes > tolerance*block {
			s.inconsistent(large, small, cell, fmt.Sprintf("%s in blocks of %s%s are %s, more than those of "+
				"small blocks, %s: columns swapped, or a wrong unit", s.text(large, cell), expr.Format(block, "B"), from,
				figure(s.typical(key{Metric: large, Cell: cell})*toBytes/block, "operations/s"), s.text(small, cell)))
		}
	}
}

// sameTest flags the cells whose bytes of an operation are not those of the others.
func (s *study) sameTest(large, small int, size map[int]float64, power float64) {
	for _, cell := range slices.Sorted(maps.Keys(size)) {
		bytes := size[cell]
		if r := bytes / power; r > 1+otherBlock || r < 1-otherBlock {
			s.inconsistent(large, small, cell, fmt.Sprintf("%s and %s make %s an operation, where the other cells have %s",
				s.text(large, cell), s.text(small, cell), expr.Format(bytes, "B"), expr.Format(power, "B")))
		}
	}
}

// inconsistent flags both figures of a cell.
func (s *study) inconsistent(large, small, cell int, evidence string) {
	for _, m := range []int{large, small} {
		k := key{Metric: m, Cell: cell}
		s.flag(s.cell(k), "blockSize", invalid, evidence)
		s.weaken(k, "%s of %s does not fit its block size", s.table.Metrics[m].Name, s.cell(k).Level)
	}
}

// blockOf is the block size of a bandwidth, with where it is from; 0 if it is unknown.
func (s *study) blockOf(metric string) (bytes float64, from string) {
	for _, name := range []string{metric, ""} {
		if size, ok := s.options.BlockSizes[name]; ok {
			return size, ""
		}
	}
	return s.options.AssumeBlock, " (assumed)"
}

// text is the typical figure of a cell with its unit.
func (s *study) text(metric, cell int) string {
	return figure(s.typical(key{Metric: metric, Cell: cell}), s.table.Metrics[metric].Unit)
}
