# Waits until the server answers with a file, and writes all to the volume.
. /config/options.sh
waited=0
until curl --silent --show-error --fail --header "Ready: 1" --output /dev/null "http://$address/0" \
    2>/output/curl.txt; do
    waited=$((waited + 1))
    if [ $waited -gt {{readyTimeout}}0 ]; then
        echo "nginx is not ready after {{readyTimeout}} s: $(cat /output/curl.txt); see stderr of the container" \
            nginx >&2
        exit 1
    fi
    sleep 0.1
done
sync --file-system /data
