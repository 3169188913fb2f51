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
image=$(kubectl rollout undo "$@" ${revision:+"$revision"} --dry-run=client |
  sed -n '/^ *trading-bff:$/,/Image:/s/^ *Image:[[:space:]]*//p')
[ -n "$image" ] || stop 'kubectl names no revision with a container trading-bff'
tag=${image%@*}
tag=${tag##*/}
case $tag in
  *:*) version=${tag##*:} ;;
  *) version= ;;
esac
refuse_to_void_a_pause "$image" "${version#v}" kubectl exec "$@" --container=trading-bff --
kubectl rollout undo "$@" ${revision:+"$revision"}
