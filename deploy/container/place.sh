#!/bin/sh
# Makes what a container needs, once, and changes nothing that is there:
#   ldpkit-place secrets                  passwords of the database and of Grafana
#   ldpkit-place collector [DATABASE_URL] a collector's place in this folder, and Prometheus' key
#   ldpkit-place node                     a node's place in this folder, and its keys
# All of it may be read by this user alone, and none of it is printed.
set -eu
umask 077
secrets=${PLACE_SECRETS:-/var/lib/ldpkit-secrets}

# A file of what a command prints, there whole or not at all.
keep() {
  file=$1
  shift
  [ -s "$file" ] && return
  "$@" >"$file.new"
  mv "$file.new" "$file"
}

password() {
  od -An -N 24 -t x1 /dev/urandom | tr -d ' \n'
}

pgpass() {
  printf '*:*:*:ldpkit:%s\n' "$(cat "$secrets/postgresql")"
}

# Asks a server that runs for a moment. A key that was made when nobody could write it down is of no use.
metrics_key() {
  ready=$(mktemp -d)/ready
  ldpkit serve --port 0 --ready-file "$ready" >&2 &
  server=$!
  while kill -0 "$server" 2>/dev/null && [ ! -s "$ready" ]; do sleep 0.1; done
  [ -s "$ready" ] || return 1
  LDPKIT_TOKEN=$(ldpkit token)
  export LDPKIT_TOKEN
  ldpkit keys prometheus --revoke --yes --collector "$(cat "$ready")" >/dev/null 2>&1 || true
  made=0
  ldpkit keys prometheus --role read --collector "$(cat "$ready")" || made=$?
  kill "$server"
  wait "$server" || true
  return "$made"
}

place() {
  [ -e ldpkit.toml ] || ldpkit init "$@" .
}

case "${1:-}" in
secrets)
  keep "$secrets/postgresql" password
  keep "$secrets/pgpass" pgpass
  keep "$secrets/grafana" password
  ;;
collector)
  place ${2:+--database "$2"}
  keep "$secrets/prometheus" metrics_key
  ;;
node)
  keep node.address ldpkit init --as node .
  ;;
*)
  echo "say what to make: ldpkit-place secrets, collector [DATABASE_URL], or node" >&2
  exit 2
  ;;
esac
