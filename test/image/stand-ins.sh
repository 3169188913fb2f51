#!/bin/sh
# Builds substitutes for the base images of Dockerfile and docker-compose.yml from Debian packages and the Node.js of this
# machine, for machines that cannot pull the originals. The substitutes have the same tags, programs, users and commands;
# tests with them do not cover anything else in the originals. Requires root, mmdebstrap and `npm ci`.
set -eu
cd "$(dirname "$0")/../.."
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# make <tag> <suite> <packages> <hook, which gets the root folder as $1> [docker import option …]
make() {
  tag=$1 suite=$2 packages=$3 hook=$4
  shift 4
  rm -f "$here/root.tar"
  # The package lists of the mirror may have expired by the clock of a test machine.
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" \
    --customize-hook="set -e; $hook" "$suite" "$here/root.tar"
  docker import "$@" "$here/root.tar" "$tag"
}

node=$(npm exec --call "node -p process.execPath")
npm=$(dirname "$(dirname "$(realpath "$(command -v npm)")")")
# The CAs that this machine trusts in addition to those of Node.js.
trusted=${NODE_EXTRA_CA_CERTS:-/dev/null}
export node npm trusted
# shellcheck disable=SC2016
make node:24-slim bookworm ca-certificates '
  install "$node" "$1/usr/local/bin/node"
  mkdir -p "$1/usr/local/lib/node_modules"
  cp -r "$npm" "$1/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"
  cat "$trusted" >"$1/etc/ssl/extra.pem"
  chroot "$1" useradd --uid 1000 --create-home node' \
  --change 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/extra.pem' --change 'CMD ["node"]'

# shellcheck disable=SC2016
make redis:7-alpine bookworm redis-server 'install -d -o 999 -g 1000 "$1/data"' \
  --change 'WORKDIR /data' --change 'VOLUME /data' --change 'CMD ["redis-server"]'

# The first Debian release with haproxy 3.2.
# shellcheck disable=SC2016
make haproxy:3.2-alpine forky haproxy 'mkdir -p "$1/usr/local/etc/haproxy"' \
  --change 'USER 99:99' \
  --change 'CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]'
