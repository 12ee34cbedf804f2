# Writes /data/file part by part, then reads it. Each part is a line of
# /output/dd.txt: what was done, when it began, and what dd says of it. The last
# line is "end".
set -eu
export LC_ALL=C

part() { # write|read, then dd's operands
	did=$1
	shift
	began=$(date +%s.%N)
	if ! said=$(dd bs=1M count={{mebibytes}} "$@" 2>&1); then
		echo "$said" >&2
		exit 1
	fi
	echo "$did $began ${said##*
}" >>/output/dd.txt
}

if [ {{direct}} = 1 ]; then
	out=oflag=direct in=iflag=direct
else
	out= in=
fi
for i in $(seq 0 $(({{parts}} - 1))); do
	part write if=/scratch/random of=/data/file seek=$((i * {{mebibytes}})) conv=notrunc,fsync $out
done
for i in $(seq 0 $(({{parts}} - 1))); do
	part read if=/data/file of=/dev/null skip=$((i * {{mebibytes}})) $in
done
echo end >>/output/dd.txt
