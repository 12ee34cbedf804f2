# Starts nginx with the files of the volume.
. /config/options.sh
reads='directio 512; aio threads; output_buffers 2 128k;'
[ {{directIO}} = true ] || reads='sendfile on;'
cat >/server/nginx.conf <<EOF
worker_processes {{workers}};
daemon off;
pid /server/pid;
error_log stderr warn;
events { worker_connections $(({{connections}} + 100)); }
http {
    # Of each request of wrk when it was answered: wrk reports no rate by second.
    map \$http_ready \$served { "" 1; default 0; }
    log_format served \$msec;
    access_log /output/wrk.served served buffer=64k flush=200ms if=\$served;
    client_body_temp_path /server/body;
    proxy_temp_path /server/proxy;
    fastcgi_temp_path /server/fastcgi;
    uwsgi_temp_path /server/uwsgi;
    scgi_temp_path /server/scgi;
    keepalive_requests 1000000000;
    $reads
    include /config/settings.conf;
    server {
        listen $address backlog=4096;
        root /data/files;
    }
}
EOF
set -- nginx -p /server -c /server/nginx.conf
if [ "$(id -u)" = 0 ]; then # engine local
    user=$(id -u nobody)
    read -r _ _ users </proc/self/uid_map
    if [ "$users" = 1 ]; then # root of an ordinary user's namespace, in which no process can be another user
        set -- unshare --user --map-user="$user" --map-group="$user" -- "$@"
    else # its workers are another user
        set -- "$@" -g "user nobody $(id -gn nobody);"
    fi
fi
exec "$@"
