# Does the I/O. The barrier has opened when it begins. A line of /output/rounds.txt is a round: its begin and its end in
# seconds since 1970, and its bytes. The last line is "end", so that the parser knows whether it has all of it.
#
# When the run is to end, the shell gets SIGTERM, which ends it. A program that has to flush or to remove something
# handles SIGTERM, and ends within the pod's terminationGracePeriodSeconds.
set -eu
stop=$(($(date +%s) + {{duration}}))
while :; do # at least one round, also where it takes longer than the run
    began=$(date +%s.%N)
    dd if=/scratch/random of=/data/file bs={{blockSize.bytes}} conv=notrunc,fsync status=none
    echo "$began $(date +%s.%N) {{fileSize.bytes}}" >>/output/rounds.txt
    [ "$(date +%s)" -lt "$stop" ] || break
done
echo end >>/output/rounds.txt
