#!/bin/sh
# @opentelemetry/exporter-prometheus 0.301.0 with sdk-metrics 3.1.1: a guess says that two sets of attributes which Prometheus cannot
# tell apart are one series, whose calls are added up. Yet the SDK keeps a number and the text of it apart, as it keeps http.status and
# http_status, and the exporter writes both with the same name and labels: `status` is 200 where one part of a program takes it from a
# response, and "200" where another reads it from a log or a header, and each has a line of its own. Prometheus 2.42.0 keeps the first
# line and drops the second: `up` is 1, nothing is logged, and `promtool check metrics` does not object. Which of the two is first
# depends on which was counted first, so that a restart makes the rate of calls or of errors another one.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @opentelemetry/api@1.10.0 @opentelemetry/sdk-metrics@3.1.1 \
  @opentelemetry/exporter-prometheus@0.301.0
cat >count.mjs <<'JS'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
for (const [first, second] of [
  [{ status: 200 }, { status: '200' }],
  [{ 'http.status': 200 }, { http_status: 200 }],
]) {
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const counter = new MeterProvider({ readers: [exporter] }).getMeter('bff').createCounter('calls')
  counter.add(300, first)
  counter.add(100, second)
  const { resourceMetrics } = await exporter.collect()
  const lines = new PrometheusSerializer().serialize(resourceMetrics).split('\n')
  console.log(lines.filter((line) => line.startsWith('calls_total')).join(' and '))
}
JS
seen=$(node count.mjs)
echo "$seen"
[ "$seen" = 'calls_total{status="200",otel_scope_name="bff"} 300 and calls_total{status="200",otel_scope_name="bff"} 100
calls_total{http_status="200",otel_scope_name="bff"} 300 and calls_total{http_status="200",otel_scope_name="bff"} 100' ]
