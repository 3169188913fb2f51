# What roll.sh and undo.sh share (sh). A version that obeys no pause must not come back while orders are paused: those that an
# operator has stopped would go out.

# The first version that knows pauses.
PAUSES_SINCE=0.3

stop() {
  echo "$*" >&2
  exit 1
}

# ask <path> <command>...: asks the ops listener of the container in which <command> runs Node, as the health check of the image
# does. Prints the body; fails unless all of it arrives within three seconds, and the status is 200.
ask() {
  path=$1
  shift
  # shellcheck disable=SC2016
  "$@" node -e '
    const { env } = process
    const token = env.OPS_TOKEN || (env.OPS_TOKEN_FILE && require("node:fs").readFileSync(env.OPS_TOKEN_FILE, "utf8").trim())
    const url = { host: env.OPS_HOST || env.HOST || "127.0.0.1", port: env.OPS_PORT || 9464, path: process.argv[1] }
    setTimeout(() => process.exit(1), 3000).unref()
    require("node:http").get({ ...url, headers: token ? { authorization: `Bearer ${token}` } : {} }, (response) => {
      response.on("error", () => (process.exitCode = 1)).pipe(process.stdout)
      // Without OPS_TOKEN nothing can be paused.
      process.exitCode = response.statusCode === 200 || (response.statusCode === 404 && !token) ? 0 : 1
    }).on("error", () => (process.exitCode = 1))' "$path"
}

# A version that is no number may be any.
knows_pauses() {
  case $1 in
    [0-9]*.[0-9]*) [ "$(printf '%s\n' "$PAUSES_SINCE" "$1" | sort -V | head -n 1)" = "$PAUSES_SINCE" ] ;;
    *) false ;;
  esac
}

# refuse_to_void_a_pause <image> <its version> <command>...: the command as for `ask`, in a container that runs now.
refuse_to_void_a_pause() {
  knows_pauses "$2" && return
  what="$1 is version ${2:-unknown}, which obeys no pause"
  shift 2
  controls=$(ask /controls "$@") || stop "$what, and this version does not say what is paused: $controls"
  case $controls in
    *'"paused":true'*) stop "$what, and orders are paused: $controls" ;;
  esac
}
