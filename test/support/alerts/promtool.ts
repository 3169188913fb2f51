import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { ALERT_RULES } from './prometheus.ts'

/** Runs promtool, which is in Debian's package prometheus. @throws Error with the output of promtool if it fails */
export function promtool(command: readonly string[], input = ''): void {
  try {
    execFileSync('promtool', command, { input, stdio: ['pipe', 'pipe', 'pipe'], maxBuffer: 64 * 1_048_576 })
  } catch (error) {
    const { code, stderr, stdout } = error as { code?: string; stderr?: Buffer; stdout?: Buffer }
    if (code === 'ENOENT') throw new Error('This test needs promtool: apt-get install prometheus', { cause: error })
    throw new Error(`promtool: ${String(stdout)}${String(stderr)}`, { cause: error })
  }
}

/**
 * Runs tests of docs/alerts.yaml in promtool's format.
 * @param interval how often the rules are evaluated
 * @param alert the only one that is evaluated, which takes a fraction of the time
 */
export function rulesHold(t: Test, tests: readonly object[], interval: string, alert?: string): void {
  const dir = t.testdir({})
  const [file, only] = [join(dir, 'tests.json'), join(dir, 'rules.json')]
  // promtool reads YAML, of which JSON is a subset.
  const rules = alert === undefined ? ALERT_RULES : only
  writeFileSync(file, JSON.stringify({ rule_files: [rules], evaluation_interval: interval, tests }))
  if (alert !== undefined) writeFileSync(only, JSON.stringify(rulesOf(alert)))
  t.doesNotThrow(() => promtool(['test', 'rules', file]))
}

/** The rules without all other alerts. */
function rulesOf(alert: string): object {
  const { groups } = parse(readFileSync(ALERT_RULES, 'utf8')) as { groups: { rules: { alert: string }[] }[] }
  const rules = groups.flatMap((group) => group.rules).filter((rule) => rule.alert === alert)
  return { groups: [{ name: alert, rules }] }
}
