# Sets the options that loading and measuring share.
set -eu
for program in {{program}} mariadbd mariadb mariadb-install-db; do
    if ! command -v "$program" >/dev/null; then
        echo "$program: not found (variables program, basedir)" >&2
        exit 127
    fi
done
set -- {{test}} --db-driver=mysql --mysql-socket=/socket/mariadb --mysql-user=sbtest --mysql-db=sbtest \
    --tables={{tables}} --table-size={{tableSize}} --rand-seed={{seed}}{{INSTANCE_NUM}} --threads={{threads}}
# query runs statements of SQL.
query() { mariadb --no-defaults --socket=/socket/mariadb --user=sbtest --execute="$1" sbtest; }
