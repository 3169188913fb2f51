import { one, operation, type Operation } from '../operation.ts'
import { Refusal } from '../refusal.ts'

/** An operation of the sandbox alone, for the demo page. No real service has it, so the server passes it on as it is. */
export const sharingOperation: Operation = operation({
  name: 'sandbox_sharing',
  properties: { sandbox_sharing: one },
  run(request, connection) {
    const { sharing } = connection.world
    if (sharing === undefined) throw new Refusal('NotAvailable', 'Only the demo knows what browsers share.')
    sharing().then(
      (view) => connection.respond(request, 'sandbox_sharing', { sandbox_sharing: { ...view } }),
      () => connection.refuse(request, 'sandbox_sharing', new Refusal('NotAvailable', 'The server does not respond.')),
    )
  },
})
