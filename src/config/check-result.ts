/** The result of one check by `--check`, for an operator. Contains no secret. */
export interface CheckResult {
  readonly is: 'ok' | 'warning' | 'failed'
  /** The setting that names what was checked. */
  readonly setting: string
  readonly message: string
  /** What the operator can do about it. */
  readonly advice?: string
}
