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
    access_log off;
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
        location = /status { stub_status; }
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
