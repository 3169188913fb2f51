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

/** What any error is shown as; the framework's own (a body too large, for one) keep their status. */
export function failureFrom(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500)
    return new Failure(Number(error.statusCode), 'BadRequest', error.message)
  return new Failure(500, 'InternalServerError', 'The sandbox has a fault: see its log.')
}
