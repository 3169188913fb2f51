/** What a look at something outside has shown, for an operator to read. Holds no secret. */
export interface CheckResult {
  readonly is: 'ok' | 'warning' | 'failed'
  /** The setting that names it. */
  readonly setting: string
  readonly message: string
  /** What to do about it. */
  readonly advice?: string
}
