import { ALL_FAULTS } from './faults/all.ts'
import { ALL_PROMISES } from './promises/all.ts'
import type { Result } from './run.ts'

/** How often each promise was put to the test while each fault was on, or had only just ended. */
export class FaultPromiseTable {
  readonly #counts = new Map<string, number>()
  readonly #applied = new Map<string, number>()

  add({ history, judged }: Result): void {
    for (const { name, from, to = Infinity, settleMs } of history.faults) {
      this.#applied.set(name, (this.#applied.get(name) ?? 0) + 1)
      for (const [promise, times] of judged) {
        const during = times.filter((at) => at >= from && at <= to + settleMs).length
        const cell = `${name} ${promise.name}`
        this.#counts.set(cell, (this.#counts.get(cell) ?? 0) + during)
      }
    }
  }

  /** A table of Markdown. */
  toString(): string {
    const promises = ALL_PROMISES.map(({ name }) => name)
    const lines = ALL_FAULTS.map(({ name }) =>
      row([name, this.#applied.get(name) ?? 0, ...promises.map((each) => this.#counts.get(`${name} ${each}`) ?? 0)]),
    )
    return [row(['fault', 'times', ...promises]), row(['---', '---', ...promises.map(() => '---')]), ...lines].join(
      '\n',
    )
  }
}

const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`
