# Runs the benchmarks one after another, each in a process of its own: db_bench keeps the report by interval and the
# statistics of one process only.
. /config/options.sh
set -- "$@" --threads={{threads}} --duration={{duration}} --sync={{sync}} --histogram=true \
    --statistics={{statistics}} --benchmark_write_rate_limit={{writeRate}} --benchmark_read_rate_limit={{readRate}} \
    --report_interval_seconds={{statsInterval}}
pid=
trap '[ -z "$pid" ] || kill "$pid"' TERM
benchmarks={{benchmarks}}
IFS=,
for name in $benchmarks; do
    out=/output/$name
    case $name in
    fill*) existing=false ;; # deletes the database
    *) existing=true ;;
    esac
    if [ -e "$out.txt" ]; then
        echo "benchmark $name is listed twice (variable benchmarks)" >&2
        exit 1
    fi
    if [ $existing = true ] && [ ! -e $db/CURRENT ]; then
        echo "benchmark $name needs a database, and load is {{load}} (variables load, benchmarks)" >&2
        exit 1
    fi
    {{program}} "$@" --benchmarks="$name" --use_existing_db=$existing --report_file="$out.csv" >"$out.txt" &
    pid=$!
    # The report has no wall clock. It is created when the database is open and the benchmark starts.
    until [ -s "$out.csv" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    date +%s.%N >"$out.start"
    wait $pid
done
