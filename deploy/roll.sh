#!/bin/sh
# Replaces the instances of docker-compose.yml, one after the other, by new ones with the image and the settings as they are
# now (docs/operating/rotation-and-upgrades.md). A new instance must be ready before an old one is stopped; if it is not, it is
# removed, the old ones serve on, and the exit code is 1.
#
#   docker compose build app && deploy/roll.sh
set -eu
cd "$(dirname "$0")/.."
# How long a new instance may take until it is ready.
READY_SECONDS=60
# Until haproxy uses a new instance: a lookup of its name and one check, a second each at most.
NOTICED_SECONDS=5
# More than DRAIN_SECONDS.
STOP_SECONDS=30
# The first version that knows pauses.
PAUSES_SINCE=0.3

instances() { docker compose ps --all --quiet app | sort; }

# ask <container> <path>: asks its ops listener as its health check does. Prints the body; fails unless the status is 200.
ask() {
  docker exec "$1" node -e '
    const { env } = process
    const token = env.OPS_TOKEN ?? (env.OPS_TOKEN_FILE && require("node:fs").readFileSync(env.OPS_TOKEN_FILE, "utf8").trim())
    const url = { host: env.OPS_HOST || env.HOST || "127.0.0.1", port: env.OPS_PORT || 9464, path: process.argv[1] }
    require("node:http").get({ ...url, timeout: 3000, headers: token ? { authorization: `Bearer ${token}` } : {} }, (response) => {
      response.pipe(process.stdout)
      // Without OPS_TOKEN nothing can be paused.
      process.exitCode = response.statusCode === 200 || (response.statusCode === 404 && !token) ? 0 : 1
    }).on("timeout", function () { this.destroy() }).on("error", () => (process.exitCode = 1))' "$2" 2>/dev/null
}

stop() {
  echo "$*" >&2
  exit 1
}

# The image that new instances get is the one that docker-compose.yml names. Where the file builds the image without a name, it
# is the name of the running image, which by now stands for the new build.
next_image() {
  docker compose config --format json | docker exec -i "$1" node -e '
    const { image } = JSON.parse(require("node:fs").readFileSync(0, "utf8")).services.app
    if (image) console.log(image)
    process.exitCode = image ? 0 : 1' || docker inspect --format '{{.Config.Image}}' "$1"
}

# An older version ignores pauses: orders that an operator has stopped would go out.
refuse_to_void_a_pause() {
  image=$(next_image "$1")
  docker image inspect "$image" >/dev/null 2>&1 || docker pull --quiet "$image" >/dev/null
  version=$(docker image inspect --format '{{index .Config.Labels "org.opencontainers.image.version"}}' "$image")
  [ "$(printf '%s\n' "$PAUSES_SINCE" "$version" | sort -V | head -n 1)" = "$PAUSES_SINCE" ] && return
  controls=$(ask "$1" /controls) || stop "$image is version ${version:-unknown}, which obeys no pause, and this version does not say what is paused: $controls"
  case $controls in
    *'"paused":true'*) stop "$image is version ${version:-unknown}, which obeys no pause, and orders are paused: $controls" ;;
  esac
}

before=
# However the roll ends, an instance that has not proved ready is removed, and so is one whose start failed half-way.
remove_unproven() {
  [ -n "$before" ] || return 0
  for each in $(instances); do
    case $before in *"$each"*) ;; *) docker rm --force "$each" >/dev/null ;; esac
  done
}
trap remove_unproven EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

old=$(instances)
[ -n "$old" ] || stop 'no instance is running: docker compose up --detach --wait'
count=$(echo "$old" | wc -l)
refuse_to_void_a_pause "$(docker compose ps --quiet app | head -n 1)"

for container in $old; do
  before=$(instances)
  docker compose up --detach --no-deps --no-recreate --scale "app=$((count + 1))" app
  new=$(instances | grep --invert-match --fixed-strings "$before") || stop 'Compose has started no new instance'
  waited=0
  until readiness=$(ask "$new" /readyz); do
    restarts=$(docker inspect --format '{{.RestartCount}}' "$new")
    if [ "$restarts" -gt 0 ] || [ "$waited" -ge "$READY_SECONDS" ]; then
      docker logs --tail 5 "$new" >&2
      stop "the new instance is not ready: ${readiness:-it does not answer}. It is removed; $count old and new ones serve on."
    fi
    sleep 1
    waited=$((waited + 1))
  done
  before=
  sleep "$NOTICED_SECONDS"
  docker stop -t "$STOP_SECONDS" "$container"
  docker rm "$container"
done
