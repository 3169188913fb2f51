# What roll.sh and undo.sh share (sh). An instance that obeys no pause, since its version knows none or it has no OPS_TOKEN, must
# not come while orders are paused: those that an operator has stopped would go out.

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

# refuse_to_void_a_pause <image> <its version> <command>...: the command as for `ask`, in a container that runs now. The script
# defines `next_has_token`: whether the next settings have OPS_TOKEN, or name its file.
refuse_to_void_a_pause() {
  what="$1 is version ${2:-unknown}, which obeys no pause"
  is_known=
  if knows_pauses "$2"; then
    is_known=yes
    what="$1 would run without OPS_TOKEN, so that it obeys no pause"
  fi
  shift 2
  if ! controls=$(ask /controls "$@"); then
    # A roll may be what puts such an instance right.
    [ -z "$is_known" ] || return 0
    stop "$what, and this version does not say what is paused: $controls"
  fi
  case $controls in
    *'"paused":true'*) ;;
    *) return 0 ;;
  esac
  if [ -z "$is_known" ] || ! next_has_token; then stop "$what, and orders are paused: $controls"; fi
}
