# Runs the operations of a workload of YCSB: the shares of the operations, and the distribution of their keys.
set -eu
. /config/options.sh
keys=zipfian
case {{workload}} in
    a) shares="read=0.5 update=0.5" ;;
    b) shares="read=0.95 update=0.05" ;;
    c) shares="read=1" ;;
    d) shares="read=0.95 insert=0.05" keys=latest ;;
    e) shares="scan=0.95 insert=0.05" ;;
    f) shares="read=0.5 readmodifywrite=0.5" ;;
esac
[ {{distribution}} = standard ] || keys={{distribution}}
set -- -p requestdistribution=$keys -p readproportion=0 -p updateproportion=0 -p maxscanlength={{maxScanLength}}
for share in $shares; do
    set -- "$@" -p "${share%=*}proportion=${share#*=}"
done
exec {{goYcsb}} run $ycsb "$@" -p operationcount={{operations}} -p maxexecutiontime={{duration}} -p target={{target}} \
    -p measurement.interval=1 {{extra}} >/output/ycsb.txt
