# Prints the sections of kernels.job of the chosen kernels.
set -eu
for kernel in $(echo '{{kernels}}' | tr ',' ' '); do
    case $kernel in
    log) echo log ;;
    objects) echo objects-gets objects-puts ;;
    *) echo "$kernel-reads" "$kernel-writes" ;;
    esac
done
