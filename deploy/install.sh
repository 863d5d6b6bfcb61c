#!/usr/bin/env bash
# A collector on Debian, or what is like it, under systemd. As root:
#
#   install.sh install --from DIST     installs the wheels of a folder (`make release` makes dist/), or
#   install.sh install --version X.Y.Z a release from pip's index; makes the place /var/lib/ldpkit, starts the server
#
# --database URL: an empty PostgreSQL in place of a file, when the place is made. --extras LIST: what else is installed,
# default collector at first, later what is there. Run it again at any time: what is there stays as it is. With another
# release it is an upgrade: servers stop, every database is backed up to /var/backups/ldpkit and then migrated, servers start. One
# that was interrupted goes on where it was. Places that are there without programs are backed up and migrated too.
set -euo pipefail
umask 022

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
OPT=/opt/ldpkit
PLACE=/var/lib/ldpkit
BACKUPS=/var/backups/ldpkit
UNITS=/etc/systemd/system
# While an upgrade is under way: the release that it began with, and the units that ran then.
MARK=$OPT/upgrading
OWNER=ldpkit
OLDEST=3.11
# Places' own settings say which database is backed up and migrated: of these variables one would win.
for name in "${!LDPKIT_@}"; do unset "$name"; done
OPT_MIB=1500
PLACE_MIB=500

say() { printf '%s\n' "$*"; }
refuse() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

usage() {
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

as_owner() { # FOLDER COMMAND…
  local folder=$1
  shift
  runuser -u "$OWNER" -- env --chdir="$folder" HOME="$PLACE" "$@"
}

has_systemd() { [ -d /run/systemd/system ]; }

enough_space() { # FOLDER MIB
  local there=$1 free
  while [ ! -d "$there" ]; do there=$(dirname "$there"); done
  free=$(($(df --output=avail --block-size=1M "$there" | tail -n 1)))
  ((free >= $2)) || refuse "$1 needs $2 MiB of free disk, $there has $free"
}

refuse_unready() {
  command -v runuser >/dev/null || refuse "needs runuser: apt install util-linux"
  command -v "$PYTHON" >/dev/null || refuse "needs Python $OLDEST or newer: apt install python3 python3-venv"
  "$PYTHON" -c "import sys; sys.exit(sys.version_info < tuple(map(int, '$OLDEST'.split('.'))))" ||
    refuse "needs Python $OLDEST or newer, $PYTHON is $("$PYTHON" -V 2>&1); name another as PYTHON=python3.12"
  "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null ||
    refuse "$PYTHON can make no virtual environment: apt install python3-venv"
  [ ! -e "$OPT" ] || [ -d "$OPT/releases" ] || refuse "$OPT is there and not of this script: move it away"
  [ ! -e "$PLACE" ] || [ -z "$(ls "$PLACE")" ] || [ -e "$PLACE/ldpkit.toml" ] ||
    refuse "$PLACE has files and no ldpkit.toml: move it away, or make its settings again (docs/operate.md)"
  [ -z "$database" ] || [ ! -e "$PLACE/ldpkit.toml" ] ||
    refuse "--database is for a place that is yet to be made: $PLACE has its own, in ldpkit.toml; leave the option out"
  enough_space "$OPT" "$OPT_MIB"
  enough_space "$PLACE" "$PLACE_MIB"
}

# What is installed, and the name of its folder.
choose_release() {
  local found
  [ -n "$extras" ] || extras=$(cat "$OPT/bin/../extras" 2>/dev/null) || extras=collector
  if [ -n "$from" ]; then
    [ -d "$from" ] || refuse "there is no folder $from"
    shopt -s nullglob
    wheels=("$from"/ldp_client-*.whl "$from"/ldpkit-*.whl)
    shopt -u nullglob
    ((${#wheels[@]} == 2)) || refuse "$from must have one wheel of ldp_client and one of ldpkit, has ${#wheels[@]}"
    found=$(cat "${wheels[@]}" | sha256sum)
    release=$(basename "${wheels[1]}" | cut -d - -f 2)-${found:0:12}
    wanted=("${wheels[0]}" "${wheels[1]}[$extras]")
  else
    release=$version
    wanted=("ldpkit[$extras]==$version")
  fi
  release=$release-${extras//[^a-z-]/_}
}

make_owner() {
  id "$OWNER" >/dev/null 2>&1 ||
    useradd --system --user-group --home-dir "$PLACE" --no-create-home --shell /usr/sbin/nologin "$OWNER"
  install -d -o "$OWNER" -g "$OWNER" -m 0700 "$PLACE" "$BACKUPS"
}

# The release's own environment; one that was not finished is made anew.
make_environment() {
  local folder=$OPT/releases/$release constraint=()
  [ -e "$folder/complete" ] && return
  if [ -e "$HERE/../constraints.txt" ]; then
    constraint=(--constraint "$HERE/../constraints.txt")
  else
    say "no constraints.txt beside this folder: the newest releases of what ldpkit needs are taken"
  fi
  rm -rf "$folder"
  install -d "$OPT" "$OPT/releases"
  "$PYTHON" -m venv "$folder"
  "$folder/bin/pip" install --quiet --no-cache-dir "${constraint[@]}" "${wanted[@]}" ||
    refuse "pip could not install ${wanted[*]}: nothing was changed"
  "$folder/bin/ldpkit" --version >/dev/null
  printf '%s\n' "$extras" >"$folder/extras"
  touch "$folder/complete"
}

switch_to() { # FOLDER/bin
  ln -sfn "$1" "$OPT/bin.new"
  mv -T "$OPT/bin.new" "$OPT/bin"
}

places() {
  local one
  for one in "$PLACE" "$PLACE"-node-*; do
    [ -e "$one/ldpkit.toml" ] && say "$one"
  done
  return 0
}

running_units() {
  has_systemd || return 0
  systemctl list-units --plain --no-legend --state=active 'ldpkit.service' 'ldpkit-node@*.service' | cut -d ' ' -f 1
}

mark_upgrade() { # OLD UNIT…
  printf '%s\n' "$@" >"$MARK.new"
  sync "$MARK.new"
  mv -T "$MARK.new" "$MARK"
  sync "$OPT"
}

back_up() { # BIN PLACE [MARK]
  local file
  file=$BACKUPS/$(basename "$2")-$(basename "$(dirname "$1")")${3:-}-$(date -u +%Y%m%dT%H%M%S).backup
  as_owner "$2" "$1/ldpkit" backup --out "$file" </dev/null || return
  say "backup of $2: $file"
}

# Nothing is migrated before every place has its backup.
upgrade() { # OLD
  local old=$1 saves=$1 is_resumed="" place units=() migrated=()
  if [ -e "$MARK" ]; then
    say "the upgrade from $(basename "$(dirname "$old")") was interrupted and goes on"
    # Some of the places may be of the new release, which the old one would refuse.
    saves=$OPT/releases/$release/bin is_resumed=yes
  fi
  mapfile -t units < <({ running_units; [ -z "$is_resumed" ] || tail -n +2 "$MARK"; } | sort -u)
  mark_upgrade "$old" "${units[@]}"
  ((${#units[@]} == 0)) || systemctl stop "${units[@]}"
  while read -r place; do
    # Of an upgrade that goes on, some places may be migrated: the name says who reads it for sure.
    back_up "$saves" "$place" "${is_resumed:+-resumed}" || {
      [ -z "$is_resumed" ] || refuse "no backup of $place could be made, and no server runs: put it right, run this again"
      start "${units[@]}"
      rm "$MARK"
      refuse "no backup of $place could be made: the old release goes on"
    }
  done < <(places)
  switch_to "$OPT/releases/$release/bin"
  while read -r place; do
    as_owner "$place" "$OPT/bin/ldpkit" migrate </dev/null || {
      switch_to "$old"
      # A migration that fails leaves its database as it was.
      if [ -z "$is_resumed" ] && ((${#migrated[@]} == 0)); then
        start "${units[@]}"
        rm "$MARK"
        refuse "$place could not be migrated: the old release goes on"
      fi
      refuse "$place could not be migrated, others were, and no server runs: put it right and run this again, which goes" \
        "on and starts ${units[*]}; or go back: put back the backup of each place that the old release refuses" \
        "(docs/operate.md), then: rm $MARK; systemctl start ${units[*]}"
    }
    migrated+=("$place")
  done < <(places)
  start "${units[@]}"
  rm "$MARK"
  # To go back there is the last one; those before it go.
  find "$OPT/releases" -mindepth 1 -maxdepth 1 ! -path "$(dirname "$old")" ! -name "$release" -exec rm -rf {} +
}

# Places that were kept without programs, or copied here: what release they are of nobody knows, and any release backs
# up what is earlier. There are no programs before all of it is done: until then every run does it.
adopt() {
  local new=$OPT/releases/$release/bin place units=()
  mapfile -t units < <(running_units)
  ((${#units[@]} == 0)) || systemctl stop "${units[@]}"
  while read -r place; do
    back_up "$new" "$place" -kept || refuse_kept "no backup of $place could be made, nothing was changed" "$place"
  done < <(places)
  while read -r place; do
    as_owner "$place" "$new/ldpkit" migrate </dev/null ||
      refuse_kept "$place could not be migrated, its backup is in $BACKUPS" "$place"
  done < <(places)
  switch_to "$new"
  start "${units[@]}"
}

refuse_kept() { # WHAT PLACE
  refuse "$1, and no server runs: see above. Files of another machine: chown -R $OWNER: $2; a later release's: install" \
    "that one; a place that is not wanted: move it away. Then run this again"
}

start() { (($# == 0)) || systemctl start "$@"; }

make_place() {
  [ -e "$PLACE/ldpkit.toml" ] && return
  as_owner "$PLACE" "$OPT/bin/ldpkit" init ${database:+--database "$database"} . ||
    refuse "the place $PLACE was not made: see above"
}

make_units() {
  [ -d "$UNITS" ] || { say "no systemd here: start $(sed -n 's/^ExecStart=//p' "$HERE/systemd/ldpkit.service")"; return; }
  install -m 0644 "$HERE/systemd/ldpkit.service" "$HERE/systemd/ldpkit-node@.service" "$UNITS"
  if has_systemd; then
    systemctl daemon-reload
    systemctl enable --now ldpkit.service
  else
    say "systemd does not run here: when it does, systemctl enable --now ldpkit"
  fi
}

install_all() {
  [[ -n $from && -z $version || -z $from && -n $version ]] || usage
  refuse_unready
  choose_release
  make_owner
  make_environment
  local old=""
  [ ! -L "$OPT/bin" ] || old=$(readlink "$OPT/bin")
  if [ -e "$MARK" ]; then
    upgrade "$(head -n 1 "$MARK")"
  elif [ -z "$old" ]; then
    adopt
  elif [ "$old" != "$OPT/releases/$release/bin" ]; then
    upgrade "$old"
  fi
  make_place
  make_units
  say "ldpkit $release is in $OPT, its place is $PLACE; the operator's token:"
  say "  sudo runuser -u $OWNER -- env --chdir=$PLACE $OPT/bin/ldpkit token"
}

command=${1:-}
shift || true
from="" version="" database="" extras="" PYTHON=${PYTHON:-python3} release="" wanted=()
while (($#)); do
  (($# > 1)) || usage
  case $1 in
    --from) from=$2 ;;
    --version) version=$2 ;;
    --database) database=$2 ;;
    --extras) extras=$2 ;;
    *) usage ;;
  esac
  shift 2
done
[ "$command" = install ] || usage
((EUID == 0)) || refuse "only root can install: sudo $0 install …"
# Not in /run/lock, where anybody may make files.
exec 9>/run/ldpkit-install.lock
flock --nonblock 9 || refuse "another install.sh runs"
install_all
