# Writes two files of Filebench's language from the personality: create.f makes the file sets, run.f runs on them.
set -eu
body=/output/body.f
if [ "{{personality}}" = own ]; then
    source=/config/own.f
else
    source={{personalities}}/{{personality}}.f
fi
if [ ! -r "$source" ]; then
    echo "no file $source: set personalities to the folder in which Filebench was installed" >&2
    exit 1
fi
# Without its own run command, and with the volume's directory. File sets that were made before are used again.
grep -Ev '^ *(run|psrun|usage|quit|create) ?' "$source" | sed -E \
    -e 's|^ *set \$dir=.*|set $dir=/data|' -e 's|^ *set \$reuseit=.*|set $reuseit=true|' \
    -e '/^ *define fileset .*path=/{/reuse/!s/ *$/,reuse/;}' >"$body"
if ! grep -q '^ *define file' "$body"; then
    echo "$source defines no files (variables personality, workloadFile)" >&2
    exit 1
fi
# change NAME VALUE VARIABLES SCRIPT: sets variables of the personality by a script of sed, unless the value is 0.
change() {
    [ "$2" != 0 ] || return 0
    if ! grep -Eq "^ *set \\\$($3)=" "$body"; then
        echo "the workload {{personality}} does not set $3: leave the variable $1 at 0" >&2
        exit 1
    fi
    sed -E -i "$4" "$body"
}
change files {{files}} 'nfiles|numactivevids' 's/^( *set \$(nfiles|numactivevids)=).*/\1{{files}}/
s/^( *set \$numpassivevids=).*/\1'$(({{files}} * 6))'/'
change fileSize {{fileSize.bytes}} 'filesize|meanfilesize' \
    's/^( *set \$(filesize|meanfilesize)=(cvar\(.*mean:)?)[0-9]+[kmgt]?/\1{{fileSize.bytes}}/'
change threads {{threads}} nthreads 's/^( *set \$nthreads=).*/\1{{threads}}/'
{
    cat "$body"
    echo "create files"
} >/output/create.f
{
    cat "$body"
    echo "psrun {{statsInterval}} {{duration}}"
} >/output/run.f
