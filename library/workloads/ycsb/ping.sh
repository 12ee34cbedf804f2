# Succeeds if the server answers.
case {{database}} in
    postgresql) exec pg_isready --quiet ;;
    ferretdb) exec {{ferretdb}} -ping -socket /socket/ferretdb.sock ;;
esac
