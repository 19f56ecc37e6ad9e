# Sourced by ./test, ./bench and ./soak: the steps of a command, and a PostgreSQL server of its own while it runs.
#
# `clean_up` ends or restores everything that is started or changed here, however the command ends.

fail() {
  echo "${0##*/}: $1" >&2
  exit "${2:-1}"
}

plan=""
step() {
  echo "== $1" >&2
  shift
  [ -n "$plan" ] || "$@"
}

# Bash handles a signal only when its foreground command has ended, and a terminated cargo leaves its children running.
# In the background, in a process group of their own, they can be ended together, at once.
group=""
together() {
  set -m
  "$@" </dev/null &
  group=$!
  set +m
  wait "$group"
  group=""
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "programs are missing; run as root or install sudo, or: apt-get install postgresql pgbouncer"
  fi
}

updated="" changed_settings=""
apt_install() {
  command -v apt-get >/dev/null || fail "$1 is not installed and apt-get is missing; install its programs"
  [ -n "$updated" ] || as_root apt-get update -q
  updated=1
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$1" ||
    fail "apt could not install $1"
}

# Where initdb and its companions are: on PATH, else Debian's newest.
server_programs() {
  local initdb programs
  for initdb in "$(command -v initdb || true)" $(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -Vr); do
    programs="$(dirname "$(readlink -f "${initdb:-/nowhere}")")"
    if [ -x "$programs/initdb" ] && [ -x "$programs/pg_ctl" ] && [ -x "$programs/postgres" ]; then
      echo "$programs"
      return 0
    fi
  done
  return 1
}

# Keeps Debian from creating and starting a cluster of its own.
main_cluster=/etc/postgresql-common/createcluster.d/refrain-test.conf
install_postgresql() {
  apt_install postgresql-common
  changed_settings=1
  as_root mkdir -p "${main_cluster%/*}"
  echo 'create_main_cluster = false' | as_root tee "$main_cluster" >/dev/null
  apt_install postgresql
}

pgbouncer_program() {
  PATH="$PATH:/usr/sbin" command -v pgbouncer
}

# Debian would start it as a service, now and at every boot; this policy prevents that.
policy=/usr/sbin/policy-rc.d
install_pgbouncer() {
  changed_settings=1
  [ ! -e "$policy" ] || as_root mv "$policy" "$policy.refrain-test"
  printf '#!/bin/sh\n# refrain-test\nexit 101\n' | as_root tee "$policy" >/dev/null
  as_root chmod 755 "$policy"
  apt_install pgbouncer
  as_root update-rc.d pgbouncer disable
}

# Restores the machine's settings, also when an installation was interrupted.
restore_settings() {
  [ -n "$changed_settings" ] || return 0
  [ ! -e "$main_cluster" ] || as_root rm -f "$main_cluster"
  ! grep -qs refrain-test "$policy" || as_root rm -f "$policy"
  [ ! -e "$policy.refrain-test" ] || as_root mv "$policy.refrain-test" "$policy"
  changed_settings=""
}

find_postgresql() {
  programs="$(server_programs)" || { install_postgresql; programs="$(server_programs)" || fail "apt installed no initdb"; }
  restore_settings
}

find_pgbouncer() {
  pooler="$(pgbouncer_program)" || { install_pgbouncer; pooler="$(pgbouncer_program)" || fail "apt installed no pgbouncer"; }
  restore_settings
}

# PostgreSQL refuses to run as root, and complains about a directory that its user may not enter. In a session of its
# own, a program that creates or starts the server is not interrupted by Ctrl-C; bash handles it right afterwards.
scratch="" scratch_root=/tmp programs="" pooler="" server_user="" server_url=""
as_server() (
  cd "$scratch"
  if [ "$(id -u)" = 0 ]; then exec setsid -w runuser -u "$server_user" -- "$programs/$1" "${@:2}"
  else exec setsid -w "$programs/$1" "${@:2}"
  fi
)

# A directory in memory, if there is room and programs may be executed there; else /tmp. The writes of a killed process
# survive there as on a disk, so every story means the same, and no test waits for a disk.
memory_root() {
  local megabytes available program
  megabytes="$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')"
  available="$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo 2>/dev/null)"
  if [ "${megabytes:-0}" -ge 4096 ] && [ "${available:-0}" -ge 6144 ] &&
    program="$(mktemp /dev/shm/refrain.XXXXXX 2>/dev/null)"; then
    printf '#!/bin/sh\n' >"$program"
    chmod 755 "$program"
    if "$program" 2>/dev/null; then rm -f "$program"; echo /dev/shm; return; fi
    rm -f "$program"
  fi
  echo /tmp
}

# One process per core that only counts, and one that writes and syncs. They also end when this command was killed and
# could not end them.
burners=()
start_burners() {
  set -m
  for _ in $(seq "$(nproc)"); do
    while kill -0 $$ 2>/dev/null; do for ((count = 0; count < 100000; count++)); do :; done; done &
    burners+=($!)
  done
  while kill -0 $$ 2>/dev/null && [ -d "$scratch" ]; do
    dd if=/dev/zero of="$scratch/synced" bs=1M count=16 conv=fsync status=none
  done &
  burners+=($!)
  set +m
}

# Takes settings of the server, as in "-c max_connections=400"; leaves its URL in server_url.
start_postgresql() {
  server_user="$(id -un postgres 2>/dev/null || echo nobody)"
  # Not in TMPDIR: the path of a socket must be short, and the server's user must have access.
  scratch="$(mktemp -d "$scratch_root/refrain-${0##*/}.XXXXXX")"
  local password port collation=(--locale=C.UTF-8)
  password="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  echo "$password" >"$scratch/password"
  [ "$(id -u)" != 0 ] || chown -R "$server_user" "$scratch"
  # As on most servers, the default collation is not the order of bytes, so a test detects statements that rely on that.
  # Not SCRAM: it makes a client compute for milliseconds at each connection, on purpose, and tests open tens of
  # thousands. The password is random, and the servers that tests start for themselves ask for SCRAM.
  case "$(as_server initdb --help)" in *--icu-locale*) collation+=(--locale-provider=icu --icu-locale=en-US) ;; esac
  as_server initdb -D "$scratch/data" -U refrain -E UTF8 "${collation[@]}" -A md5 \
    --pwfile="$scratch/password" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "initdb failed"; }
  for _ in {1..20}; do
    # Below the ports that the system assigns to outgoing connections.
    port=$((10000 + RANDOM % 20000))
    if as_server pg_ctl -D "$scratch/data" -l "$scratch/data/log" -w -s start -o "-p $port -c listen_addresses=127.0.0.1 \
      -c unix_socket_directories='$scratch' -c fsync=on ${1:-}" 2>"$scratch/log"; then
      # Temporary files of killed processes are removed together with the server.
      server_url="postgres://refrain:$password@127.0.0.1:$port/postgres"
      export TMPDIR="$scratch"
      return 0
    fi
    grep -q 'Address already in use' "$scratch/data/log" || break
  done
  cat "$scratch/log" "$scratch/data/log" >&2
  fail "PostgreSQL did not start"
}

clean_up() {
  local code=$?
  trap '' INT TERM HUP PIPE
  [ -z "$group" ] || { kill -TERM -- "-$group"; wait "$group"; } 2>/dev/null || true
  for burner in "${burners[@]}"; do { kill -KILL -- "-$burner"; wait "$burner"; } 2>/dev/null || true; done
  if [ -n "$scratch" ]; then
    as_server pg_ctl -D "$scratch/data" -m immediate -w -s stop 2>/dev/null || true
    # Servers that a killed test had for itself may write there until they have noticed.
    for _ in {1..10}; do
      if rm -rf "$scratch" 2>/dev/null; then break; fi
      sleep 1
    done
  fi
  restore_settings
  [ "$code" = 0 ] || echo "== failed (exit code $code) after $SECONDS s" >&2
  exit "$code"
}

# Called once the command knows what it was asked for.
begin() {
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 141' PIPE
  trap 'exit 143' TERM
  # Where another PostgreSQL is must not leak into ours, nor into what is run on it.
  unset "${!PG@}"
}
