# Replays the logs that the init container made: one fio job for each.
set -eu
LOGS=/log/0
lane=1
while [ "$lane" -lt {{jobs}} ]; do
    LOGS=$LOGS:/log/$lane
    lane=$((lane + 1))
done
export LOGS
exec fio --output-format=json+ --output=/output/fio.json /config/job.fio
