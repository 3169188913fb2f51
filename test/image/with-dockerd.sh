#!/bin/sh
# Runs a command with a temporary Docker daemon and removes everything afterwards, for machines on which no Docker daemon
# runs or the running one must not be used. Requires root and the packages of Docker.
#
#   test/image/with-dockerd.sh npm run test:image
set -eu
name=bff-$$
net=10.231.$(($$ % 250)).0
net6=fdbf:bff:$(printf %x $(($$ % 65535)))
dir=$(mktemp -d /var/tmp/with-dockerd-XXXXXX)
forwarding=$(cat /proc/sys/net/ipv4/ip_forward)
nat="POSTROUTING -s $net/30 -j MASQUERADE"
daemon=

clean_up() {
  # The daemon is the first process of its PID namespace, so killing it kills all others, including those of containers.
  [ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null || :
  [ -z "$daemon" ] || wait "$daemon" 2>/dev/null || :
  # shellcheck disable=SC2086
  iptables -t nat -D $nat 2>/dev/null || :
  echo "$forwarding" >/proc/sys/net/ipv4/ip_forward
  ip netns delete "$name" 2>/dev/null || :
  rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# The daemon gets its own network namespace, so that it does not change the network of the host, with a route out.
ip netns add "$name"
ip link add "$name" type veth peer name eth0 netns "$name"
ip address add "${net%.0}.1/30" dev "$name"
ip link set "$name" up
ip -n "$name" address add "${net%.0}.2/30" dev eth0
ip -n "$name" link set eth0 up
ip -n "$name" link set lo up
ip -n "$name" route add default via "${net%.0}.1"
# Only for those who come over IPv6.
ip address add "$net6::1/64" dev "$name" nodad
ip -n "$name" address add "$net6::2/64" dev eth0 nodad
echo 1 >/proc/sys/net/ipv4/ip_forward
# shellcheck disable=SC2086
iptables -t nat -A $nat

# `ip netns exec` would hide the control groups, hence nsenter. Docker 27 and newer have IPv6 without these options.
nsenter --net="/run/netns/$name" unshare --mount --pid --fork --kill-child --mount-proc \
  dockerd --experimental --ip6tables --default-address-pool base=172.24.0.0/14,size=24 \
  --default-address-pool "base=$net6:d::/64,size=80" \
  --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" --host "unix://$dir/docker.sock" \
  >"$dir/log" 2>&1 &
daemon=$!
export DOCKER_HOST="unix://$dir/docker.sock"
tries=60
until docker version >/dev/null 2>&1; do
  tries=$((tries - 1))
  if [ $tries = 0 ] || ! kill -0 $daemon 2>/dev/null; then tail -20 "$dir/log" >&2; exit 1; fi
  sleep 0.5
done
nsenter --net="/run/netns/$name" "$@"
