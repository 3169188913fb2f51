#!/bin/sh
# Goes back to the former revision of the Deployment, or to another one, as `kubectl rollout undo` does, unless it would void a
# pause of orders (docs/operating/runbook.md, Restart and roll back). The tag of an image counts as its version.
#
#   deploy/undo.sh [--to-revision=3] [-n trading-bff] deployment/trading-bff
set -eu
# shellcheck source=deploy/pauses.sh
. "$(dirname "$0")/pauses.sh"

revision=
case ${1-} in
  --to-revision=*)
    revision=$1
    shift
    ;;
esac

# What `undo` would bring back. Several containers may be in a pod.
template=$(kubectl rollout undo "$@" ${revision:+"$revision"} --dry-run=client)
image=$(printf '%s\n' "$template" | sed -n '/^ *trading-bff:$/,/Image:/s/^ *Image:[[:space:]]*//p')
[ -n "$image" ] || stop 'kubectl names no revision with a container trading-bff'
tag=${image%@*}
tag=${tag##*/}
case $tag in
  *:*) version=${tag##*:} ;;
  *) version= ;;
esac

# The settings may be in the Deployment, or in a ConfigMap that it names.
options=
for each in "$@"; do
  case $each in deploy*/*) ;; *) options="$options $each" ;; esac
done
next_has_token() {
  printf '%s\n' "$template" | grep -q '^ *OPS_TOKEN\(_FILE\)\{0,1\}:[[:space:]]*[^[:space:]]' && return
  for map in $(printf '%s\n' "$template" | sed -n 's/^ *\([^[:space:]]*\)[[:space:]]*ConfigMap[[:space:]].*Optional: .*/\1/p'); do
    # shellcheck disable=SC2086
    token=$(kubectl get $options "configmap/$map" --output='jsonpath={.data.OPS_TOKEN}{.data.OPS_TOKEN_FILE}')
    [ -z "$token" ] || return 0
  done
  return 1
}

refuse_to_void_a_pause "$image" "${version#v}" kubectl exec "$@" --container=trading-bff --
kubectl rollout undo "$@" ${revision:+"$revision"}
