import { readFileSync, writeFileSync } from 'node:fs'

const ALERTS = new URL('../../../docs/alerts.yaml', import.meta.url)

/** The alerts of docs/alerts.yaml for the Prometheus operator. `node deploy/kubernetes/monitoring/build-rule.ts` writes it. */
export const RULE_FILE = new URL('prometheus-rule.yaml', import.meta.url)

const HEAD = `# Made from docs/alerts.yaml: change that, and run node deploy/kubernetes/monitoring/build-rule.ts.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: trading-bff
  labels:
    app.kubernetes.io/name: trading-bff
spec:
`

/** The text of that file. The specification of a rule is a file of rules. */
export function ruleText(): string {
  return HEAD + readFileSync(ALERTS, 'utf8').replaceAll(/^(?=.)/gm, '  ')
}

if (import.meta.main) writeFileSync(RULE_FILE, ruleText())
