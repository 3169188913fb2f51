# The commands of docs/operating/runbook.md, for bash: `. deploy/toolbox.sh`. It needs curl, and for `redis` redis-cli and REDIS_URL.

# The ops port of one instance. Where several may differ, set it for each.
# Compose, on its machine, where no port but the balancer's is published: ops=http://$(docker inspect --format \
#   '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}' "$(docker compose ps -q app | head -n 1)" | cut -d ' ' -f 1):9464
ops=${ops:-http://127.0.0.1:9464}
# What docs/operating/controls.md has: `ops ''` shows what is paused. It needs OPS_TOKEN.
ops() { curl -sS -H "Authorization: Bearer $OPS_TOKEN" "$ops/controls$1" "${@:2}"; }
# REDIS_URL names one server, as redis:// or rediss://. redis-cli takes a missing user for one without a name.
# Compose: redis() { docker compose exec -T redis sh -c 'REDISCLI_AUTH=$(head -n 1 /run/secrets/redis-password) redis-cli "$@"' - "$@"; }
redis() { redis-cli --no-auth-warning -u "${REDIS_URL/:\/\/:/://default:}" "$@"; }
# Kubernetes: kubectl logs --since=15m --tail=-1 -l app.kubernetes.io/name=trading-bff
# systemd: journalctl -o cat --since=-15m -u trading-bff
logs() { docker compose logs --since 15m --no-log-prefix app; }
# How often each value of a field occurs in these lines, the most frequent first.
count() { grep -oE '"'"$1"'":("([^"\\]|\\.)*"|[^,}]*)' | sort | uniq -c | sort -rn | head; }
# The metrics whose name begins so, without bff_.
now() { curl -s "$ops/metrics" | grep -E "^bff_($1)"; }
# What has been counted during ten seconds, the most frequent first.
recent() { awk '{ n = $NF; $NF = ""; if (FNR == NR) was[$0] = n; else if (n > was[$0]) print n - was[$0], $0 }' \
  <(now "($1).*_total") <(sleep 10; now "($1).*_total") | sort -rn; }
