package bundle

import (
	"iter"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Volume records a driver's reading of a volume. Its message is without secrets.
func (w *Writer) Volume(r op.VolumeReading) {
	r.Message = w.text.clean(r.Message)
	w.line(volumesFile, &r)
}

// Volumes yields the drivers' readings of volumes in order of arrival.
func (b *Bundle) Volumes() iter.Seq2[op.VolumeReading, error] {
	return lines[op.VolumeReading](b, volumesFile)
}
