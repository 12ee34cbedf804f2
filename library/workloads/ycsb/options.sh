# Sets $ycsb to the options of go-ycsb that the load and the run have in common.
case {{database}} in
    postgresql) ycsb="pg -p pg.host= -p pg.user=postgres -p pg.db=ycsb" ;; # the socket is that of $PGHOST
    ferretdb) ycsb="mongodb -p mongodb.url=mongodb://%2Fsocket%2Fferretdb.sock/ycsb" ;;
esac
ycsb="$ycsb -p recordcount={{records}} -p fieldcount={{fieldCount}} -p fieldlength={{fieldLength}} \
    -p threadcount={{threads}}"
