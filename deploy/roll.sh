#!/bin/sh
# Replaces the instances of docker-compose.yml, one after the other, by new ones with the image and the settings as they are
# now (docs/operating/rotation-and-upgrades.md). A new instance must be ready before an old one is stopped; if it is not, it is
# removed, the old ones serve on, and the exit code is 1.
#
#   docker compose build app && deploy/roll.sh
set -eu
cd "$(dirname "$0")/.."
. deploy/pauses.sh
# How long a new instance may take until it is ready.
READY_SECONDS=60
# Until haproxy uses a new instance: a lookup of its name and one check, a second each at most.
NOTICED_SECONDS=5
# More than DRAIN_SECONDS.
STOP_SECONDS=30

instances() { docker compose ps --all --quiet app | sort; }

# The image that new instances get is the one that docker-compose.yml names. Where the file builds the image without a name, it
# is the name of the running image, which by now stands for the new build.
next_image() {
  docker compose config --format json | docker exec -i "$1" node -e '
    const { image } = JSON.parse(require("node:fs").readFileSync(0, "utf8")).services.app
    if (image) console.log(image)
    process.exitCode = image ? 0 : 1' || docker inspect --format '{{.Config.Image}}' "$1"
}

# The version of an image, as its label says it.
version_of() {
  docker image inspect "$1" >/dev/null 2>&1 || docker pull --quiet "$1" >/dev/null
  docker image inspect --format '{{index .Config.Labels "org.opencontainers.image.version"}}' "$1"
}

next_has_token() {
  docker compose config --format json | docker exec -i "$running" node -e '
    const { environment } = JSON.parse(require("node:fs").readFileSync(0, "utf8")).services.app
    process.exitCode = environment?.OPS_TOKEN || environment?.OPS_TOKEN_FILE ? 0 : 1'
}

before=
replaced=
retire() {
  sleep "$NOTICED_SECONDS"
  docker stop -t "$STOP_SECONDS" "$replaced"
  docker rm "$replaced"
  replaced=
}

# However the roll ends, an instance that has not proved ready is removed, and so is one whose start failed half-way. One whose
# successor serves goes, or there would be one more each time.
settle() {
  [ -z "$replaced" ] || retire || true
  [ -n "$before" ] || return 0
  for each in $(instances); do
    case $before in *"$each"*) ;; *) docker rm --force "$each" >/dev/null ;; esac
  done
}
trap settle EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

old=$(instances)
[ -n "$old" ] || stop 'no instance is running: docker compose up --detach --wait'
# Compose would start one that somebody has stopped.
[ "$old" = "$(docker compose ps --quiet app | sort)" ] ||
  stop 'not all instances run: start the others with docker compose start app, or remove them with docker compose rm app'
count=$(echo "$old" | wc -l)
running=$(docker compose ps --quiet app | head -n 1)
image=$(next_image "$running")
version=$(version_of "$image")
refuse_to_void_a_pause "$image" "$version" docker exec "$running"

for container in $old; do
  before=$(instances)
  docker compose up --detach --no-deps --no-recreate --scale "app=$((count + 1))" app
  new=$(instances | grep --invert-match --fixed-strings "$before") || stop 'Compose has started no new instance'
  deadline=$(($(date +%s) + READY_SECONDS))
  until readiness=$(ask /readyz docker exec "$new" 2>/dev/null); do
    restarts=$(docker inspect --format '{{.RestartCount}}' "$new")
    if [ "$restarts" -gt 0 ] || [ "$(date +%s)" -ge "$deadline" ]; then
      docker logs --tail 5 "$new" >&2
      stop "the new instance is not ready: ${readiness:-it does not answer}. It is removed; $count old and new ones serve on."
    fi
    sleep 1
  done
  before='' replaced=$container
  retire
done
