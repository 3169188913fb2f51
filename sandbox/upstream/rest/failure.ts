/** Why a REST request is not carried out; each family of endpoints wraps it in its own way. */
export class Failure extends Error {
  readonly status: number
  readonly code: string
  /** The field of the request that is wrong. */
  readonly field: string | undefined
  constructor(status: number, code: string, message: string, field?: string) {
    super(message)
    this.name = 'Failure'
    this.status = status
    this.code = code
    this.field = field
  }
}

/** What any foreign error is shown as. */
export function failureFrom(error: unknown): Failure {
  return error instanceof Failure
    ? error
    : new Failure(500, 'InternalServerError', 'The sandbox has a fault: see its log.')
}
