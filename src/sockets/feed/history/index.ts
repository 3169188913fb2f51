// Where a history ends among the messages of its stream.
export { type Point, pointOf, tailOf } from './points.ts'
export { RecentMessages } from './recent-messages.ts'
export type { Seam } from './seam.ts'
