package cluster

import "testing"

// TestSysbenchImage runs sysbench from the files of the image alone, in a chroot.
func TestSysbenchImage(t *testing.T) {
	inImage(t, sysbench, SysbenchImage, sysbenchImage, `mkdir /tmp/x; cd /tmp/x; date +%s.%N; df -Pk .
sysbench fileio --file-num=2 --file-total-size=1M prepare; sync test_file.0; touch y
sysbench fileio --file-num=2 --file-total-size=1M --file-test-mode=rndrd --time=1 run`, "total number of events:")
}
