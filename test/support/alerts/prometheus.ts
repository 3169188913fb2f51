import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { proxyProcess } from '../proxies/process.ts'
import { until } from '../time/until.ts'

/** The rules that the guide tells operators to load. */
export const ALERT_RULES = fileURLToPath(new URL('../../../docs/alerts.yaml', import.meta.url))

/** Labels of a series, and its values: times in seconds, and numbers as text. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly (readonly [number, string])[]
}

/** A real Prometheus that scrapes twice a second. */
export interface Prometheus {
  /** The series of an expression since the start. @throws Error with what Prometheus says against it */
  range(expr: string): Promise<readonly Series[]>
  /** Every set of labels that series of this selector have had. */
  labels(selector: string): Promise<readonly Readonly<Record<string, string>>[]>
  /** Resolves once each instance was scraped twice more. */
  scraped(): Promise<void>
}

/** Starts one that ends with the test. @param targets host:port of each ops listener */
export async function startPrometheus(t: Test, job: string, targets: readonly string[]): Promise<Prometheus> {
  const dir = t.testdir({})
  const config = join(dir, 'prometheus.yml')
  // Prometheus reads YAML, of which JSON is a subset.
  const text = JSON.stringify({
    global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
    rule_files: [ALERT_RULES],
    scrape_configs: [{ job_name: job, static_configs: [{ targets }] }],
  })
  writeFileSync(config, text)
  const port = await freePort()
  const options = [`--config.file=${config}`, `--storage.tsdb.path=${join(dir, 'data')}`]
  const listen = `--web.listen-address=127.0.0.1:${port}`
  const startedAt = Date.now() / 1000
  await proxyProcess(t, 'prometheus', [...options, listen], { port, log: join(dir, 'prometheus.log') })
  await until(async () => (await fetch(`http://127.0.0.1:${port}/-/ready`)).ok, 'Prometheus is ready')
  const ask = async (path: string, parameters: Record<string, string>): Promise<unknown> => {
    const url = `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`
    const answer = (await (await fetch(url)).json()) as { data?: unknown; error?: string }
    if (answer.error !== undefined) throw new Error(`${answer.error}: ${JSON.stringify(parameters)}`)
    return answer.data
  }
  /** How often the instance with the fewest was scraped. */
  const scrapes = async (): Promise<number> => {
    const { result } = (await ask('query', { query: `sum_over_time(up{job="${job}"}[1h])` })) as {
      result: { value: Series['values'][number] }[]
    }
    return result.length < targets.length ? 0 : Math.min(...result.map(({ value }) => Number(value[1])))
  }
  return {
    async range(query) {
      const [start, end] = [startedAt, Date.now() / 1000].map(String) as [string, string]
      return ((await ask('query_range', { query, start, end, step: '0.2' })) as { result: Series[] }).result
    },
    labels: async (selector) => (await ask('series', { 'match[]': selector })) as Series['metric'][],
    async scraped() {
      const before = await scrapes()
      await until(async () => (await scrapes()) >= before + 2, 'Prometheus scrapes every instance')
    },
  }
}
